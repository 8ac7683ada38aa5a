-- Close waiting jobs that had not begun by their expiry, the longest expired first. Leased ones are stepped over; so is
-- what somebody else's transaction holds.
-- takes: the gate's $1 to $4; application, how many at most
-- returns: how many
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'expire', $3, $4) AS open, runwick.now_ms() AS now_ms
), expired AS MATERIALIZED (
  SELECT hot.*, gate.now_ms
  FROM gate
  CROSS JOIN LATERAL (
    SELECT hot.job, hot.generation, hot.application, hot.revision, hot.executions, hot.told_xid
    FROM runwick.hot AS hot
    WHERE gate.open AND hot.application = $5 AND hot.expires_at_ms <= gate.now_ms AND hot.claim IS NULL
    ORDER BY hot.expires_at_ms, hot.job
    LIMIT $6
    FOR UPDATE SKIP LOCKED
  ) AS hot
), gone AS (
  DELETE FROM runwick.hot AS hot USING expired WHERE hot.job = expired.job
), closed AS (
  INSERT INTO runwick.closing (xid, job, generation, application, revision, executions, ended_at_ms, state, code)
  SELECT greatest(pg_current_xact_id(), told_xid), job, generation, application, revision + 1, executions, now_ms, 'failed',
    'expired'
  FROM expired
)
SELECT count(*) FROM expired;
