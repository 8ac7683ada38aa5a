-- Close waiting jobs that had not begun by their expiry, the longest expired first. Leased ones are stepped over; so is
-- what somebody else's transaction holds. A place that one of them was called in for, or promised, is passed on.
-- takes: the gate's $1 to $4; application, how many at most, how many jobs to call at most
-- returns: how many, and three NULLs; then, behind a NULL, lane, due_at_ms and job of those that were called
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'expire', $3, $4) AS open, runwick.now_ms() AS now_ms
), expired AS MATERIALIZED (
  SELECT hot.*, gate.now_ms
  FROM gate
  CROSS JOIN LATERAL (
    SELECT hot.job, hot.generation, hot.application, hot.revision, hot.executions, hot.told_xid, hot.called, hot.due_at_ms
    FROM runwick.hot AS hot
    WHERE gate.open AND hot.application = $5 AND hot.expires_at_ms <= gate.now_ms AND hot.claim IS NULL
    ORDER BY hot.expires_at_ms, hot.job
    LIMIT $6
    FOR UPDATE SKIP LOCKED
  ) AS hot
), gone AS (
  DELETE FROM runwick.hot AS hot USING expired WHERE hot.job = expired.job
  RETURNING 1
), closed AS (
  INSERT INTO runwick.closing (xid, job, generation, application, revision, executions, ended_at_ms, state, code)
  SELECT greatest(pg_current_xact_id(), told_xid), job, generation, application, revision + 1, executions, now_ms, 'failed',
    'expired'
  FROM expired
), called AS MATERIALIZED (
  SELECT next.*
  FROM (
    SELECT array_agg(called ORDER BY called, due_at_ms, job) AS limits,
      array_agg(due_at_ms ORDER BY called, due_at_ms, job) AS dues_ms
    FROM expired
    WHERE called IS NOT NULL
      AND (SELECT count(*) FROM gone) IS NOT NULL  -- first who goes: some of them may stand in that line
  ) AS passed
  CROSS JOIN LATERAL runwick.pass_on(passed.limits, passed.dues_ms, $7::integer) AS next
)
SELECT count(expired.job), NULL::integer, NULL::bigint, NULL::uuid FROM expired
UNION ALL
SELECT NULL, called.lane, called.due_at_ms, called.job FROM called;
