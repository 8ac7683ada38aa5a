-- End attempts, each as it says: a row for the history, and the job waits again or its generation is closed. An attempt
-- whose row somebody else's transaction holds is left alone and not waited for; so is one whose claim token is not the
-- row's any more. If the state of one job does not allow its move, nothing is written. Recovery ends attempts in the
-- same way, but only those whose lease has run out; one that never began then leaves no row, gives its number back and
-- counts for the unstarted guard. (What is asked of a table row by row is asked for a value: for an EXISTS, the server
-- may read the whole table into a hash.)
-- takes: the gate's $1 to $4; act ('settle' or 'recover');
--        $6 to $16, per attempt: job, attempt id, its way to end (from 1), begun_at_ms, wall_us, cpu_us,
--        rss_peak_bytes, usage, delay_ms, error, result;
--        $17 to $22, per way to end: claim token, outcome, its code, state, its code, the state that does not allow it;
--        $23: claims of which nothing is left
-- returns: place (from 1), 'done' (it was settled so before), 'waits' with lane, due_at_ms and job, 'locked',
--          'not_yours' or 'illegal'; no row for the others, which are closed
WITH member AS MATERIALIZED (
  SELECT
    hot.state AS stood, asked.job, hot.generation, hot.attempts, asked.way, hot.application, hot.revision,
    hot.executions, hot.kind, asked.attempt_id, asked.begun_at_ms, asked.wall_us, asked.cpu_us, asked.rss_peak_bytes,
    asked.usage, asked.delay_ms, asked.place, asked.error, asked.result
  FROM unnest(
    $6::uuid[], $7::uuid[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[],
    $14::bigint[], $15::text[], $16::bytea[]
  ) WITH ORDINALITY AS asked (
    job, attempt_id, way, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage, delay_ms, error, result, place
  )
  LEFT JOIN LATERAL (
    SELECT hot.state, hot.generation, hot.attempts, hot.application, hot.revision, hot.executions, hot.kind
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.claim = ($17::uuid[])[asked.way]
      AND ($5 <> 'recover' OR hot.lease_until_ms <= runwick.now_ms())
    FOR UPDATE SKIP LOCKED
  ) AS hot ON true
), gate AS MATERIALIZED (
  SELECT bool_and(runwick.gate($1, $2::integer, meant.application, $5, $3, $4))
      AND NOT EXISTS (SELECT FROM member WHERE stood = ($22::text[])[way]) AS open,
    runwick.now_ms() AS now_ms, cardinality($15::text[]) + cardinality($16::bytea[]) > 0 AS details,
    'retrying' = ANY ($20::text[]) AS retries
  FROM (
    SELECT unnest(coalesce(array_agg(DISTINCT application), '{NULL}')) AS application
    FROM member
    WHERE stood IS NOT NULL
  ) AS meant
), owner AS MATERIALIZED (
  SELECT array_agg(claim.worker ORDER BY asked.way) AS workers,
    array_agg(claim.claimed_at_ms ORDER BY asked.way) AS claimed_at_ms
  FROM unnest($17::uuid[]) WITH ORDINALITY AS asked (claim, way)
  LEFT JOIN runwick.claim AS claim ON claim.token = asked.claim
), attempted AS (
  INSERT INTO runwick.attempt (
    job, generation, number, attempt_id, worker, claimed_at_ms, begun_at_ms, ended_at_ms, wall_us, cpu_us,
    rss_peak_bytes, kind, outcome, code, usage
  )
  SELECT
    job, generation, attempts, attempt_id, owner.workers[way], owner.claimed_at_ms[way], begun_at_ms, now_ms, wall_us,
    cpu_us, rss_peak_bytes, kind, ($18::text[])[way], ($19::text[])[way], usage
  FROM gate CROSS JOIN owner CROSS JOIN member
  WHERE gate.open AND stood IS NOT NULL AND (
    -- What an earlier damage left in the way must not stop the recovery of all others.
    $5 <> 'recover' OR stood = 'running' AND (
      SELECT true
      FROM runwick.attempt AS there
      WHERE there.job = member.job AND there.generation = member.generation AND there.number = member.attempts
    ) IS NULL
  )
  RETURNING 1
), detailed AS (
  INSERT INTO runwick.detail (attempt, ended_at_ms, error, result)
  SELECT attempt_id, now_ms, error, result
  FROM gate CROSS JOIN member
  WHERE gate.open AND gate.details AND stood IS NOT NULL AND (error IS NOT NULL OR result IS NOT NULL)
), waiting AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.executions > 0 THEN 'retrying' ELSE 'pending' END,
    revision = hot.revision + 1,
    due_at_ms = coalesce(gate.now_ms + member.delay_ms, hot.due_at_ms),
    code = ($21::text[])[way],
    crashes = hot.crashes + (($18::text[])[way] = 'crashed')::integer,
    attempts = hot.attempts - (stood = 'reserved' AND $5 = 'recover')::integer,
    unstarted = CASE WHEN stood = 'running' THEN 0 ELSE hot.unstarted + ($5 = 'recover')::integer END,
    -- A planned retry moves the expiry on: the job gets as long from its new due time as it had from its creation.
    expires_at_ms = CASE WHEN stood = 'running' AND hot.expires_at_ms IS NOT NULL THEN greatest(
      hot.expires_at_ms,
      gate.now_ms + coalesce(member.delay_ms, 0)
        + (SELECT job.expires_at_ms - job.created_at_ms FROM runwick.job AS job WHERE job.id = hot.job)
    ) ELSE hot.expires_at_ms END,
    claim = NULL,
    lease_until_ms = NULL
  FROM gate CROSS JOIN member
  WHERE gate.open AND gate.retries AND stood IS NOT NULL AND ($20::text[])[way] = 'retrying' AND hot.job = member.job
  RETURNING member.place, hot.lane, hot.due_at_ms, hot.job
), closed AS (
  INSERT INTO runwick.closing (job, generation, application, revision, executions, ended_at_ms, state, code)
  SELECT job, generation, application, revision + 1, executions, now_ms, ($20::text[])[way], ($21::text[])[way]
  FROM gate CROSS JOIN member
  WHERE gate.open AND stood IS NOT NULL AND ($20::text[])[way] <> 'retrying' AND (
    $5 <> 'recover' OR (
      SELECT true FROM runwick.closing AS there WHERE there.job = member.job AND there.generation = member.generation
    ) IS NULL
  ) AND (SELECT count(*) FROM attempted) IS NOT NULL  -- first the attempts: positions tell what followed from what
), ended AS (
  DELETE FROM runwick.hot AS hot USING gate CROSS JOIN member
  WHERE gate.open AND stood IS NOT NULL AND ($20::text[])[way] <> 'retrying' AND hot.job = member.job
), finished AS (
  DELETE FROM runwick.claim AS claim USING gate WHERE gate.open AND claim.token = ANY ($23::uuid[])
)
SELECT waiting.place, 'waits', waiting.lane, waiting.due_at_ms, waiting.job FROM waiting
UNION ALL
SELECT
  member.place,
  CASE
    WHEN stood IS NOT NULL THEN 'illegal'
    WHEN (
      SELECT true
      FROM runwick.attempt AS attempt
      WHERE attempt.job = member.job AND attempt.attempt_id = member.attempt_id AND attempt.outcome = ($18::text[])[way]
      LIMIT 1
    ) THEN 'done'
    WHEN (
      SELECT true FROM runwick.hot AS hot WHERE hot.job = member.job AND hot.claim = ($17::uuid[])[way]
    ) THEN 'locked'
    ELSE 'not_yours'
  END,
  NULL, NULL, NULL
FROM member
WHERE stood IS NULL OR stood = ($22::text[])[way];
