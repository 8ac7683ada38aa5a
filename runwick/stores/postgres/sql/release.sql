-- Free rows as if they had not been claimed: the due time and all that counts failures stay. A job that somebody
-- cancelled is closed instead. A row that somebody else's transaction holds is not waited for.
-- takes: the gate's $1 to $4; per attempt: job, claim token; how many jobs to call at most
-- returns: place (from 1), 'done' with lane, due_at_ms and job, or 'cancelled', or 'locked', or 'not_yours'; then, with
--          'called', lane, due_at_ms and job of those that were called for the scopes that came free
WITH member AS MATERIALIZED (
  SELECT
    asked.job, hot.state, hot.application, hot.generation, hot.revision, hot.executions, hot.cancel_requested_at_ms,
    hot.told_xid, hot.holds, asked.claim, asked.place
  FROM unnest($5::uuid[], $6::uuid[]) WITH ORDINALITY AS asked (job, claim, place)
  LEFT JOIN LATERAL (
    SELECT hot.state, hot.application, hot.generation, hot.revision, hot.executions, hot.cancel_requested_at_ms,
      hot.told_xid, hot.holds
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.claim = asked.claim
    FOR UPDATE SKIP LOCKED
  ) AS hot ON true
), gate AS MATERIALIZED (
  SELECT bool_and(runwick.gate($1, $2::integer, meant.application, 'release', $3, $4)) AS open, runwick.now_ms() AS now_ms
  FROM (
    SELECT unnest(coalesce(array_agg(DISTINCT application), '{NULL}')) AS application
    FROM member
    WHERE state IS NOT NULL
  ) AS meant
), freed AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.executions > (hot.state = 'running')::integer THEN 'retrying' ELSE 'pending' END,
    revision = hot.revision + 1,
    attempts = hot.attempts - 1,
    executions = hot.executions - (hot.state = 'running')::integer,
    holds = 0,
    claim = NULL,
    begun_at_ms = NULL,
    lease_until_ms = NULL
  FROM gate CROSS JOIN member
  WHERE gate.open AND member.state IS NOT NULL AND member.cancel_requested_at_ms IS NULL AND hot.job = member.job
  RETURNING member.place, hot.lane, hot.due_at_ms, hot.job
), gone AS (
  DELETE FROM runwick.hot AS hot USING gate CROSS JOIN member
  WHERE gate.open AND member.cancel_requested_at_ms IS NOT NULL AND hot.job = member.job
), closed AS (
  INSERT INTO runwick.closing (
    xid, job, generation, application, revision, executions, ended_at_ms, cancel_requested_at_ms, state, code
  )
  SELECT
    greatest(pg_current_xact_id(), told_xid), job, generation, application, revision + 1, executions - (state = 'running')::integer, now_ms,
    cancel_requested_at_ms, 'cancelled', 'cancel_requested'
  FROM gate CROSS JOIN member
  WHERE gate.open AND cancel_requested_at_ms IS NOT NULL
), called AS MATERIALIZED (
  SELECT called.*
  FROM runwick.free((SELECT array_agg(member.job) FROM gate JOIN member ON gate.open AND member.holds > 0), $7::integer)
    AS called
)
SELECT freed.place, 'done', freed.lane, freed.due_at_ms, freed.job FROM freed
UNION ALL
SELECT
  member.place,
  CASE WHEN member.state IS NOT NULL THEN 'cancelled' WHEN hot.job IS NULL THEN 'not_yours' ELSE 'locked' END,
  NULL, NULL, NULL
FROM member LEFT JOIN runwick.hot AS hot ON hot.job = member.job AND hot.claim = member.claim
WHERE member.state IS NULL OR member.cancel_requested_at_ms IS NOT NULL
UNION ALL
SELECT NULL, 'called', called.lane, called.due_at_ms, called.job FROM called;
