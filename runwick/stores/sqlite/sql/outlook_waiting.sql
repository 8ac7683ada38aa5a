-- How many jobs of one kind wait in one lane, counted in the index.
-- takes: lane, kind, now_ms
-- returns: due now, due later
SELECT
  (SELECT count(*) FROM runwick_hot WHERE lane = ?1 AND kind = ?2 AND lease_until_ms IS NULL AND line IS NULL
     AND due_at_ms <= ?3),
  (SELECT count(*) FROM runwick_hot WHERE lane = ?1 AND kind = ?2 AND lease_until_ms IS NULL AND line IS NULL
     AND due_at_ms > ?3);
