-- What `claim` does, for jobs without limits of which not all can be taken: some end the claim, some have expired.
--
--   candidate   the first due rows behind each lane's mark, locked; what somebody else has locked is passed over
--   judged      row by row, how many reasons there are so far to end the claim
--   leased      what is taken                        expired   what is closed instead
--
-- Candidates come in the order of the lanes, within a lane in claim order; that is their place, and they are not sorted
-- again until they are judged.
-- takes: what `claim` takes
-- returns: as `claim`; but in the fourth column 'lone', if a job that may not run ahead ended the claim; 'limited', if some
--          have limits, and then nothing was written; and in the fifth NULL, if some had expired
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'claim', $3, $4) AS open,
    EXISTS (SELECT FROM runwick.claim AS before WHERE before.token = $6) AS claimed_before,
    (SELECT intake.revision FROM runwick.intake AS intake WHERE intake.application = $5) <> $20 AS moved
), asking AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms FROM gate WHERE gate.open AND NOT gate.claimed_before AND NOT gate.moved
), candidate AS MATERIALIZED (
  SELECT lane.number AS lane, hot.due_at_ms, hot.job, hot.payload_bytes, hot.max_executions - hot.executions < 2 AS lone,
    coalesce(hot.expires_at_ms <= asking.now_ms, false) AS expired, hot.limited
  FROM asking
  CROSS JOIN unnest($9::bigint[], $10::bigint[], $11::uuid[], $18::bigint[], $19::bigint[]) WITH ORDINALITY
    AS lane (id, due_at_ms, job, most, waited_ms, number)
  CROSS JOIN LATERAL (
    SELECT hot.due_at_ms, hot.job, hot.payload_bytes, hot.executions, hot.max_executions, hot.expires_at_ms, hot.limited
    FROM runwick.hot AS hot
    WHERE hot.lane = lane.id AND hot.due_at_ms <= asking.now_ms - lane.waited_ms
      AND (hot.due_at_ms, hot.job) > (lane.due_at_ms, lane.job)
      AND hot.kind = ANY ($12::bigint[]) AND hot.claim IS NULL AND hot.line IS NULL
    ORDER BY hot.due_at_ms, hot.job
    LIMIT lane.most
    FOR UPDATE SKIP LOCKED
  ) AS hot
  LIMIT greatest($14, 1)
), head AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms, count(*) AS found, coalesce(bool_or(expired), false) AS expired,
    coalesce(bool_or(limited), false) AS limited
  FROM candidate
), counted AS (
  SELECT candidate.*, count(*) OVER so_far AS place, count(*) FILTER (WHERE NOT candidate.expired) OVER so_far AS number,
    sum(payload_bytes) FILTER (WHERE NOT candidate.expired) OVER so_far AS bytes
  FROM head JOIN candidate ON NOT head.limited
  WINDOW so_far AS (ROWS UNBOUNDED PRECEDING)
), judged AS MATERIALIZED (
  SELECT reasoned.*, count(reason) OVER (ROWS UNBOUNDED PRECEDING) AS reasons
  FROM (
    SELECT lane, due_at_ms, job, place, expired,
      CASE
        WHEN place > $14 THEN 'full'
        WHEN expired THEN NULL
        WHEN number > $13 AND lone THEN 'lone'
        WHEN number > 1 AND bytes > $15 THEN 'full'
      END AS reason
    FROM counted
  ) AS reasoned
), taken AS MATERIALIZED (
  SELECT judged.lane, judged.due_at_ms, judged.job FROM judged WHERE judged.reasons = 0 AND NOT judged.expired
), leased AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.payload_bytes <= $17 THEN 'running' ELSE 'reserved' END,
    revision = hot.revision + 1,
    attempts = hot.attempts + 1,
    executions = hot.executions + (hot.payload_bytes <= $17)::integer,
    claim = $6,
    lease_until_ms = head.now_ms + $16
  FROM head CROSS JOIN taken JOIN runwick.job AS job ON job.id = taken.job
  WHERE hot.job = taken.job
  RETURNING
    hot.due_at_ms, hot.job, hot.lane, hot.kind, job.policy, hot.payload_bytes <= $17 AS begun, hot.generation,
    hot.attempts, hot.executions, hot.max_executions, hot.unstarted, hot.crashes, hot.payload_bytes, job.created_at_ms,
    job.metadata, job.tenant, job.traceparent, job.tracestate,
    CASE WHEN hot.payload_bytes <= $17 THEN job.payload END AS payload
), claimed AS (
  INSERT INTO runwick.claim (token, first_attempt_id, worker, claimed_at_ms, check_at_ms, application, jobs)
  SELECT $6, $7, $8, asking.now_ms, head.now_ms + $16, $5::integer, (
    SELECT array_agg(taken.job ORDER BY taken.lane, taken.due_at_ms, taken.job) FROM taken  -- as they are answered
  )
  FROM asking CROSS JOIN head
  WHERE EXISTS (SELECT FROM taken)
), expired AS (
  DELETE FROM runwick.hot AS hot USING judged
  WHERE hot.job = judged.job AND judged.expired AND judged.reasons = 0
  RETURNING greatest(pg_current_xact_id(), hot.told_xid) AS told_xid, hot.job, hot.generation, hot.application,
    hot.revision + 1 AS revision, hot.executions
), closed AS (
  INSERT INTO runwick.closing (xid, job, generation, application, revision, executions, ended_at_ms, state, code)
  SELECT expired.*, head.now_ms, 'failed', 'expired' FROM head CROSS JOIN expired
)
SELECT
  asking.now_ms,
  gate.claimed_before,
  gate.moved,
  CASE
    WHEN head.limited THEN 'limited'
    WHEN EXISTS (SELECT FROM judged WHERE judged.reasons = 1 AND judged.reason = 'lone') THEN 'lone'
  END,
  CASE
    WHEN NOT head.expired THEN head.found >= greatest($14, 1) OR EXISTS (SELECT FROM judged WHERE judged.reasons > 0)
  END,
  CASE WHEN head.found > 0 THEN asking.now_ms ELSE runwick.next_due_ms($9, $19, $12, asking.now_ms) END,
  (SELECT count(*) FROM taken),
  nobody.*
FROM gate CROSS JOIN head LEFT JOIN asking ON true LEFT JOIN leased AS nobody ON false
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, leased.* FROM leased;
