-- How many jobs stand in front of a job in its lane, counted up to ?5.
-- takes: application, lane, due_at_ms, job_id, how many
-- returns: count
SELECT count(*) FROM (
  SELECT 1
  FROM runwick_kind AS kind
  CROSS JOIN runwick_hot AS hot ON hot.lane = ?2 AND hot.kind = kind.id AND hot.lease_until_ms IS NULL
    AND hot.line IS NULL AND (hot.due_at_ms, hot.job_id) < (?3, ?4)
  WHERE kind.application = ?1
  LIMIT ?5
);
