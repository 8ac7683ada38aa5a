-- As `dispatch_late`, of dispatches that may have found existing jobs: it waits at both keys, and always undoes itself.
-- Where one was not applied, that is said (RW006); else all were meanwhile, and are seen when the act is run again (RW007).
-- takes: ids, operation ids, by how many milliseconds each is late
WITH late AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS late (id, operation_id, late_ms)
), noted AS (
  INSERT INTO runwick.reused (operation, application, job, deadline_ms, match, drift)
  SELECT late.operation_id, 0, late.id, 0, '', false FROM late ORDER BY late.operation_id
  ON CONFLICT (operation) DO NOTHING
  RETURNING operation
), tried AS (
  INSERT INTO runwick.job (id, operation_id, created_at_ms, application, lane, kind, policy, payload_bytes, payload)
  SELECT late.id, late.operation_id, 0, 0, 0, 0, 0, 0, ''
  FROM late
  WHERE (SELECT count(*) FROM noted) IS NOT NULL
  ORDER BY late.id
  ON CONFLICT (id) DO NOTHING
  RETURNING id
)
SELECT runwick.undo(
  CASE WHEN missing.late_ms IS NULL THEN 'RW007' ELSE 'RW006' END,
  coalesce(missing.operation_id || ' ' || missing.late_ms, '')
)
FROM (SELECT count(*) FROM tried) AS waited
LEFT JOIN LATERAL (
  SELECT late.operation_id, late.late_ms
  FROM tried JOIN late ON late.id = tried.id JOIN noted ON noted.operation = late.operation_id
  LIMIT 1
) AS missing ON true;
