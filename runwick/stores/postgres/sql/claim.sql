-- Lease due jobs to a worker, and begin and charge those whose payload comes along: all in one statement, if all that it
-- finds can be taken, which is mostly so. If not, nothing is written, and `claim_divided` judges them one by one, or
-- `claim_judged`, where limits are concerned.
--
--   candidate   the first due rows behind each lane's mark, locked; what somebody else has locked is passed over
--   head        whether all of them can be taken
--   leased      what is taken
--
-- Candidates come in the order of the lanes, within a lane in claim order; that is their place. How the server joins is its
-- own choice, so rows of `leased` may come in another order. A row is found again where it was locked (a ctid costs less
-- than an index). One that was changed between this statement's beginning and its lock is not there: it is left alone, and
-- who asks sees it by the count. Jobs in a line stand in no lane.
-- takes: the gate's $1 to $4; application, claim token, first attempt id, worker; lanes, and for each the due_at_ms and
--        the job behind which to look; kinds; how many may be any, how many in all, bytes of payload, lease_ms, bytes
--        of a payload that comes along; $18 and $19, per lane: how many at most, for how long they have been due;
--        the number of what keeps jobs from being claimed
-- returns: first one row of now_ms, whether the token has claimed before, whether that number is another one, why not all
--          can be taken ('limited' or 'divided'; NULL, if they are), whether there may be more in the last lane and those
--          behind it, when the next is due (now, if something is; NULL, if nothing will be), how many were to be taken;
--          then, behind seven NULLs, one row per job that was taken: its due_at_ms and the columns of an attempt under way
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'claim', $3, $4) AS open,
    EXISTS (SELECT FROM runwick.claim AS before WHERE before.token = $6) AS claimed_before,
    (SELECT intake.revision FROM runwick.intake AS intake WHERE intake.application = $5) <> $20 AS moved,
    runwick.now_ms() AS now_ms
), candidate AS MATERIALIZED (
  SELECT hot.at, hot.job, hot.payload_bytes, hot.max_executions - hot.executions < 2 AS lone,
    coalesce(hot.expires_at_ms <= gate.now_ms, false) AS expired, hot.limited
  FROM gate
  CROSS JOIN unnest($9::bigint[], $10::bigint[], $11::uuid[], $18::bigint[], $19::bigint[])
    AS lane (id, due_at_ms, job, most, waited_ms)
  CROSS JOIN LATERAL (
    SELECT hot.ctid AS at, hot.job, hot.payload_bytes, hot.executions, hot.max_executions, hot.expires_at_ms, hot.limited
    FROM runwick.hot AS hot
    WHERE hot.lane = lane.id AND hot.due_at_ms <= gate.now_ms - lane.waited_ms
      AND (hot.due_at_ms, hot.job) > (lane.due_at_ms, lane.job)
      AND hot.kind = ANY ($12::bigint[]) AND hot.claim IS NULL AND hot.line IS NULL
    ORDER BY hot.due_at_ms, hot.job
    LIMIT lane.most
    FOR UPDATE SKIP LOCKED
  ) AS hot
  WHERE gate.open AND NOT gate.claimed_before AND NOT gate.moved
  LIMIT greatest($14, 1)
), head AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms, count(*) AS found, array_agg(job) AS jobs,
    CASE
      WHEN bool_or(limited) THEN 'limited'
      WHEN count(*) > $14 OR bool_or(expired) OR count(*) > $13 AND bool_or(lone) OR sum(payload_bytes) > $15 THEN 'divided'
    END AS refused
  FROM candidate
), leased AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.payload_bytes <= $17 THEN 'running' ELSE 'reserved' END,
    revision = hot.revision + 1,
    attempts = hot.attempts + 1,
    executions = hot.executions + (hot.payload_bytes <= $17)::integer,
    claim = $6,
    lease_until_ms = (SELECT head.now_ms + $16 FROM head)
  FROM candidate JOIN runwick.job AS job ON job.id = candidate.job
  WHERE hot.ctid = candidate.at AND (SELECT head.refused IS NULL FROM head)
  RETURNING
    hot.due_at_ms, hot.job, hot.lane, hot.kind, job.policy, hot.payload_bytes <= $17 AS begun, hot.generation, hot.attempts,
    hot.executions, hot.max_executions, hot.unstarted, hot.crashes, hot.payload_bytes, job.created_at_ms, job.metadata,
    job.tenant, job.traceparent, job.tracestate, CASE WHEN hot.payload_bytes <= $17 THEN job.payload END AS payload
), claimed AS (
  INSERT INTO runwick.claim (token, first_attempt_id, worker, claimed_at_ms, check_at_ms, application, jobs)
  SELECT $6, $7, $8, gate.now_ms, head.now_ms + $16, $5::integer, head.jobs
  FROM gate CROSS JOIN head
  WHERE head.found > 0 AND head.refused IS NULL
)
SELECT
  gate.now_ms,
  gate.claimed_before,
  gate.moved,
  head.refused,
  head.found >= greatest($14, 1),
  CASE WHEN head.found > 0 THEN gate.now_ms ELSE runwick.next_due_ms($9, $19, $12, gate.now_ms) END,
  CASE WHEN head.refused IS NULL THEN head.found ELSE 0 END,
  nobody.*
FROM gate CROSS JOIN head LEFT JOIN leased AS nobody ON false
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, leased.* FROM leased;
