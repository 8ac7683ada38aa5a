-- Forget receipts of dispatches whose deadline was before ?1.
-- takes: deadline_ms, how many
DELETE FROM runwick_reused
WHERE operation IN (SELECT operation FROM runwick_reused WHERE deadline_ms < ?1 LIMIT ?2);
