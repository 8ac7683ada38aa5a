-- Lease due jobs to a worker, and begin and charge those whose payload comes along: all in one statement, if all that it
-- finds can be taken, which is mostly so. If not, nothing is written, and `claim_divided` judges them one by one.
--
--   candidate   the first due rows behind each lane's mark, locked; what somebody else has locked is passed over
--   head        whether all of them can be taken
--   leased      what is taken
--
-- Candidates come in the order of the lanes, within a lane in claim order, and are not sorted again: all that follows
-- keeps their order.
-- takes: the gate's $1 to $4; application, claim token, first attempt id, worker; lanes, and for each the due_at_ms and
--        the job behind which to look; kinds; how many may be any, how many in all, bytes of payload, lease_ms, bytes
--        of a payload that comes along
-- returns: first one row of now_ms, whether the token has claimed before, whether not all can be taken, whether
--          everything due was seen, when the next is due (now, if something is; NULL, if nothing will be); then, behind
--          five NULLs, one row per job that was taken: due_at_ms and the columns of an attempt under way
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'claim', $3, $4) AS open,
    EXISTS (SELECT FROM runwick.claim AS before WHERE before.token = $6) AS claimed_before
), asking AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms FROM gate WHERE gate.open AND NOT gate.claimed_before
), candidate AS MATERIALIZED (
  SELECT hot.job, hot.payload_bytes, hot.max_executions - hot.executions < 2 AS lone,
    coalesce(hot.expires_at_ms <= asking.now_ms, false) AS expired
  FROM asking
  CROSS JOIN unnest($9::bigint[], $10::bigint[], $11::uuid[]) AS lane (id, due_at_ms, job)
  CROSS JOIN LATERAL (
    SELECT hot.job, hot.payload_bytes, hot.executions, hot.max_executions, hot.expires_at_ms
    FROM runwick.hot AS hot
    WHERE hot.lane = lane.id AND hot.due_at_ms <= asking.now_ms
      AND (hot.due_at_ms, hot.job) > (lane.due_at_ms, lane.job)
      AND hot.kind = ANY ($12::bigint[]) AND hot.claim IS NULL
    ORDER BY hot.due_at_ms, hot.job
    LIMIT greatest($14, 1)
    FOR UPDATE SKIP LOCKED
  ) AS hot
  LIMIT greatest($14, 1)
), head AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms, count(*) AS found,
    count(*) > $14 OR bool_or(expired) OR count(*) > $13 AND bool_or(lone) OR sum(payload_bytes) > $15 AS divided
  FROM candidate
), leased AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.payload_bytes <= $17 THEN 'running' ELSE 'reserved' END,
    revision = hot.revision + 1,
    attempts = hot.attempts + 1,
    executions = hot.executions + (hot.payload_bytes <= $17)::integer,
    claim = $6,
    lease_until_ms = head.now_ms + $16
  FROM head JOIN candidate ON NOT head.divided JOIN runwick.job AS job ON job.id = candidate.job
  WHERE hot.job = candidate.job
  RETURNING
    hot.due_at_ms, hot.job, hot.lane, hot.kind, job.policy, hot.payload_bytes <= $17 AS begun, hot.generation,
    hot.attempts, hot.executions, hot.max_executions, hot.unstarted, hot.crashes, hot.payload_bytes, job.created_at_ms,
    job.metadata, job.tenant, job.traceparent, job.tracestate,
    CASE WHEN hot.payload_bytes <= $17 THEN job.payload END AS payload
), claimed AS (
  INSERT INTO runwick.claim (token, first_attempt_id, worker, claimed_at_ms, check_at_ms, application, jobs)
  SELECT $6, $7, $8, asking.now_ms, head.now_ms + $16, $5::integer, (SELECT array_agg(leased.job) FROM leased)
  FROM asking CROSS JOIN head
  WHERE head.found > 0 AND NOT head.divided
)
SELECT
  asking.now_ms,
  gate.claimed_before,
  head.divided,
  head.found < greatest($14, 1),
  CASE WHEN head.found > 0 THEN asking.now_ms ELSE (
    -- The next due row of each lane; behind a thousand of which none can be decoded it is time to look again.
    SELECT min(next.due_at_ms)
    FROM unnest($9::bigint[]) AS lane (id)
    CROSS JOIN LATERAL (
      SELECT later.due_at_ms
      FROM (
        SELECT ahead.*, row_number() OVER () AS number
        FROM (
          SELECT hot.due_at_ms, hot.kind, hot.claim
          FROM runwick.hot AS hot
          WHERE hot.lane = lane.id AND hot.due_at_ms > asking.now_ms
          ORDER BY hot.due_at_ms, hot.job
          LIMIT 1000
        ) AS ahead
      ) AS later
      WHERE later.kind = ANY ($12::bigint[]) AND later.claim IS NULL OR later.number = 1000
      LIMIT 1
    ) AS next
  ) END,
  nobody.*
FROM gate CROSS JOIN head LEFT JOIN asking ON true LEFT JOIN leased AS nobody ON false
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, leased.* FROM leased;
