-- Forget window keys whose time is over.
-- takes: now_ms, how many
DELETE FROM runwick_uniqueness WHERE id IN (SELECT id FROM runwick_uniqueness WHERE until_ms <= ?1 LIMIT ?2);
