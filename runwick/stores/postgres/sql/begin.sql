-- Authorise and charge an attempt that is only reserved, while its lease holds, and read its payload. One that has
-- begun is read again and not charged again.
-- takes: the gate's $1 to $4; job, claim token
-- returns: whether the row was free, executions, payload; no row when it is no longer the caller's
WITH seen AS MATERIALIZED (
  SELECT hot.application
  FROM runwick.hot AS hot
  WHERE hot.job = $5 AND hot.claim = $6 AND hot.lease_until_ms > runwick.now_ms()
), locked AS MATERIALIZED (
  SELECT hot.job, hot.state, hot.executions, hot.lease_until_ms
  FROM runwick.hot AS hot
  WHERE hot.job = $5 AND hot.claim = $6
  FOR UPDATE SKIP LOCKED
), gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, (SELECT application FROM seen), 'begin', $3, $4) AS open,
    runwick.now_ms() AS now_ms
), held AS MATERIALIZED (
  SELECT locked.* FROM gate JOIN locked ON gate.open AND locked.lease_until_ms > gate.now_ms
), begun AS (
  UPDATE runwick.hot AS hot SET
    state = 'running',
    revision = hot.revision + 1,
    executions = hot.executions + 1
  FROM held
  WHERE hot.job = held.job AND held.state = 'reserved'
)
SELECT true, held.executions + (held.state = 'reserved')::integer, job.payload
FROM held JOIN runwick.job AS job ON job.id = held.job
UNION ALL
SELECT false, NULL, NULL FROM gate CROSS JOIN seen WHERE NOT EXISTS (SELECT FROM locked);
