-- Authorise and charge an attempt that is only reserved, while its lease holds, and read its payload. One that has
-- begun is read again and not charged again. A job that somebody cancelled, or that has expired, is closed instead and
-- not charged.
-- takes: the gate's $1 to $4; job, claim token; how many jobs to call at most
-- returns: whether the row was free, why the job was closed instead, executions, payload, and three NULLs; no row when it
--          is no longer the caller's. Behind four NULLs, lane, due_at_ms and job of those that were called for the scopes
--          that came free
WITH seen AS MATERIALIZED (
  SELECT hot.application
  FROM runwick.hot AS hot
  WHERE hot.job = $5 AND hot.claim = $6 AND hot.lease_until_ms > runwick.now_ms()
), locked AS MATERIALIZED (
  SELECT hot.*
  FROM runwick.hot AS hot
  WHERE hot.job = $5 AND hot.claim = $6
  FOR UPDATE SKIP LOCKED
), gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, (SELECT application FROM seen), 'begin', $3, $4) AS open,
    runwick.now_ms() AS now_ms
), held AS MATERIALIZED (
  SELECT locked.*, gate.now_ms,
    CASE
      WHEN locked.state <> 'reserved' THEN NULL
      WHEN locked.cancel_requested_at_ms IS NOT NULL THEN 'cancel_requested'
      WHEN locked.expires_at_ms <= gate.now_ms THEN 'expired'
    END AS ended
  FROM gate JOIN locked ON gate.open AND locked.lease_until_ms > gate.now_ms
), begun AS (
  UPDATE runwick.hot AS hot SET
    state = 'running',
    revision = hot.revision + 1,
    executions = hot.executions + 1
  FROM held
  WHERE hot.job = held.job AND held.ended IS NULL AND held.state = 'reserved'
), gone AS (
  DELETE FROM runwick.hot AS hot USING held WHERE hot.job = held.job AND held.ended IS NOT NULL
), closed AS (
  INSERT INTO runwick.closing (
    job, generation, application, revision, executions, ended_at_ms, cancel_requested_at_ms, state, code
  )
  SELECT
    job, generation, application, revision + 1, executions, now_ms, cancel_requested_at_ms,
    CASE ended WHEN 'expired' THEN 'failed' ELSE 'cancelled' END, ended
  FROM held
  WHERE ended IS NOT NULL
), called AS MATERIALIZED (
  SELECT called.*
  FROM runwick.free((SELECT array_agg(job) FROM held WHERE ended IS NOT NULL AND holds > 0), $7::integer) AS called
)
SELECT true, held.ended, held.executions + (held.state = 'reserved')::integer, job.payload, nobody.*
FROM held JOIN runwick.job AS job ON job.id = held.job LEFT JOIN called AS nobody ON false
UNION ALL
SELECT false, NULL, NULL, NULL, NULL, NULL, NULL FROM gate CROSS JOIN seen WHERE NOT EXISTS (SELECT FROM locked)
UNION ALL
SELECT NULL, NULL, NULL, NULL, called.lane, called.due_at_ms, called.job FROM called;
