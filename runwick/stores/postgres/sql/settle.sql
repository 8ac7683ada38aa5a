-- End attempts, each as it says: a row for the history, and the job waits again or its generation is closed. Where a
-- cancel stands on the row and the way to end says what is to be written then, that is written: the job is cancelled. An
-- attempt whose row somebody else's transaction holds is left alone and not waited for; so is one whose claim token is
-- not the row's any more. If the state of one job does not allow its move, nothing is written. Recovery ends attempts in
-- the same way, but only those whose lease has run out, or whose worker is dead; one that never began then leaves no
-- row, gives its number back and counts for the unstarted guard. (What is asked of a table row by row is asked for a
-- value: for an EXISTS, the server may read the whole table into a hash.)
-- takes: the gate's $1 to $4; act ('settle' or 'recover'), of recovery the workers that are dead: then no lease
--        need have run out;
--        $7 to $19, per attempt: job, attempt id, its way to end (from 1), begun_at_ms, wall_us, cpu_us,
--        rss_peak_bytes, usage, delay_ms, error, result, death, black_box;
--        $20 to $25, per way to end: claim token, outcome, its code, state, its code, the state that does not allow it;
--        $26 to $28, likewise, if a cancel stands: outcome (NULL: nothing else is written), its code, the state's code;
--        $29: claims of which nothing is left; how many jobs to call at most
-- returns: place (from 1), 'done' (it was settled so before; of recovery, which counts what it closes itself, that is
--          'not_yours'), 'waits' with lane, due_at_ms and job, 'cancelled', 'locked', 'not_yours' or 'illegal'; no row for
--          the others, which are closed; then, with 'called', lane, due_at_ms and job of those that were called for the
--          scopes that came free
WITH member AS MATERIALIZED (
  SELECT
    hot.state AS stood, asked.job, hot.generation, hot.attempts, asked.way, hot.application, hot.revision,
    hot.executions, hot.kind, asked.attempt_id, coalesce(asked.begun_at_ms, hot.begun_at_ms) AS begun_at_ms,
    asked.wall_us, asked.cpu_us, asked.rss_peak_bytes, asked.usage, asked.delay_ms, asked.place, asked.error,
    asked.result, asked.death, asked.black_box, hot.cancel_requested_at_ms, hot.holds,
    greatest(pg_current_xact_id(), hot.told_xid) AS told_xid,
    hot.cancel_requested_at_ms IS NOT NULL AND ($26::text[])[asked.way] IS NOT NULL AS stops,
    $5 = 'settle' AND ($23::text[])[asked.way] = 'succeeded' AND ($24::text[])[asked.way] IS NULL
      AND hot.cancel_requested_at_ms IS NULL AS succeeds
  FROM unnest(
    $7::uuid[], $8::uuid[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[],
    $15::bigint[], $16::text[], $17::bytea[], $18::text[], $19::text[]
  ) WITH ORDINALITY AS asked (
    job, attempt_id, way, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage, delay_ms, error, result, death, black_box,
    place
  )
  LEFT JOIN LATERAL (
    SELECT
      hot.state, hot.generation, hot.attempts, hot.application, hot.revision, hot.executions, hot.kind, hot.begun_at_ms,
      hot.cancel_requested_at_ms, hot.told_xid, hot.holds
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.claim = ($20::uuid[])[asked.way]
      AND ($5 <> 'recover' OR cardinality($6::uuid[]) > 0 OR hot.lease_until_ms <= runwick.now_ms())
    FOR UPDATE SKIP LOCKED
  ) AS hot ON true
), gate AS MATERIALIZED (
  SELECT bool_and(runwick.gate($1, $2::integer, meant.application, $5, $3, $4))
      AND NOT EXISTS (SELECT FROM member WHERE stood = ($25::text[])[way]) AS open,
    runwick.now_ms() AS now_ms,
    cardinality($16::text[]) + cardinality($17::bytea[]) + cardinality($19::text[]) > 0 AS details,
    'retrying' = ANY ($23::text[]) AS retries
  FROM (
    SELECT unnest(coalesce(array_agg(DISTINCT application), '{NULL}')) AS application
    FROM member
    WHERE stood IS NOT NULL
  ) AS meant
), owner AS MATERIALIZED (
  SELECT array_agg(claim.worker ORDER BY asked.way) AS workers,
    array_agg(claim.claimed_at_ms ORDER BY asked.way) AS claimed_at_ms
  FROM unnest($20::uuid[]) WITH ORDINALITY AS asked (claim, way)
  LEFT JOIN runwick.claim AS claim ON claim.token = asked.claim
), attempted AS (
  INSERT INTO runwick.attempt (
    xid, job, generation, number, attempt_id, worker, claimed_at_ms, begun_at_ms, ended_at_ms, delay_ms, wall_us, cpu_us,
    rss_peak_bytes, application, revision, kind, executions, outcome, code, usage, death
  )
  SELECT
    told_xid, job, generation, attempts, attempt_id, owner.workers[way], owner.claimed_at_ms[way], begun_at_ms, now_ms,
    CASE WHEN NOT stops AND ($23::text[])[way] = 'retrying' THEN delay_ms END, wall_us, cpu_us, rss_peak_bytes,
    CASE WHEN succeeds THEN application END, CASE WHEN succeeds THEN revision + 1 END, kind,
    CASE WHEN succeeds THEN executions END,
    CASE WHEN stops THEN ($26::text[])[way] ELSE ($21::text[])[way] END,
    CASE WHEN stops THEN ($27::text[])[way] ELSE ($22::text[])[way] END,
    usage, death
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
  INSERT INTO runwick.detail (attempt, ended_at_ms, error, result, black_box)
  SELECT attempt_id, now_ms, error, result, black_box
  FROM gate CROSS JOIN member
  WHERE gate.open AND gate.details AND stood IS NOT NULL
    AND (error IS NOT NULL OR result IS NOT NULL OR black_box IS NOT NULL)
), waiting AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.executions > 0 THEN 'retrying' ELSE 'pending' END,
    revision = hot.revision + 1,
    due_at_ms = coalesce(gate.now_ms + member.delay_ms, hot.due_at_ms),
    code = ($24::text[])[way],
    crashes = hot.crashes + (($21::text[])[way] = 'crashed')::integer,
    attempts = hot.attempts - (stood = 'reserved' AND $5 = 'recover')::integer,
    unstarted = CASE WHEN stood = 'running' THEN 0 ELSE hot.unstarted + ($5 = 'recover')::integer END,
    -- What is planned moves the expiry on: the job gets as long from its new due time as it had from its creation.
    expires_at_ms = CASE
      WHEN hot.expires_at_ms IS NOT NULL AND (stood = 'running' OR member.delay_ms IS NOT NULL) THEN greatest(
        hot.expires_at_ms,
        gate.now_ms + coalesce(member.delay_ms, 0)
          + (SELECT job.expires_at_ms - job.created_at_ms FROM runwick.job AS job WHERE job.id = hot.job)
      )
      ELSE hot.expires_at_ms
    END,
    told_xid = member.told_xid,
    holds = 0,
    claim = NULL,
    begun_at_ms = NULL,
    lease_until_ms = NULL
  FROM gate CROSS JOIN member
  WHERE gate.open AND gate.retries AND stood IS NOT NULL AND NOT stops AND ($23::text[])[way] = 'retrying'
    AND hot.job = member.job
  RETURNING member.place, hot.lane, hot.due_at_ms, hot.job
), closed AS (
  INSERT INTO runwick.closing (
    xid, job, generation, application, revision, executions, ended_at_ms, cancel_requested_at_ms, state, code
  )
  SELECT
    told_xid, job, generation, application, revision + 1, executions, now_ms, cancel_requested_at_ms,
    CASE WHEN stops THEN 'cancelled' ELSE ($23::text[])[way] END,
    CASE WHEN stops THEN ($28::text[])[way] ELSE ($24::text[])[way] END
  FROM gate CROSS JOIN member
  WHERE gate.open AND stood IS NOT NULL AND NOT succeeds AND (stops OR ($23::text[])[way] <> 'retrying') AND (
    $5 <> 'recover' OR (
      SELECT true FROM runwick.closing AS there WHERE there.job = member.job AND there.generation = member.generation
    ) IS NULL
  ) AND (SELECT count(*) FROM attempted) IS NOT NULL  -- first the attempts: positions tell what followed from what
), ended AS (
  DELETE FROM runwick.hot AS hot USING gate CROSS JOIN member
  WHERE gate.open AND stood IS NOT NULL AND (stops OR ($23::text[])[way] <> 'retrying') AND hot.job = member.job
), called AS MATERIALIZED (
  SELECT called.*
  FROM runwick.free((SELECT array_agg(member.job) FROM gate JOIN member ON gate.open AND member.holds > 0), $30::integer)
    AS called
), finished AS (
  DELETE FROM runwick.claim AS claim USING gate WHERE gate.open AND claim.token = ANY ($29::uuid[])
), departed AS (
  UPDATE runwick.worker AS worker SET departed_at_ms = coalesce(worker.departed_at_ms, gate.now_ms)
  FROM gate
  WHERE gate.open AND worker.id = ANY ($6)
)
SELECT waiting.place, 'waits', waiting.lane, waiting.due_at_ms, waiting.job FROM waiting
UNION ALL
SELECT
  member.place,
  CASE
    WHEN stops THEN 'cancelled'
    WHEN stood IS NOT NULL THEN 'illegal'
    WHEN $5 = 'settle' AND (
      SELECT true
      FROM runwick.attempt AS attempt
      WHERE attempt.job = member.job AND attempt.attempt_id = member.attempt_id
        AND attempt.outcome IN (($21::text[])[way], ($26::text[])[way])
      LIMIT 1
    ) THEN 'done'
    WHEN (
      SELECT true FROM runwick.hot AS hot WHERE hot.job = member.job AND hot.claim = ($20::uuid[])[way]
    ) THEN 'locked'
    ELSE 'not_yours'
  END,
  NULL, NULL, NULL
FROM member
WHERE stood IS NULL OR stops OR stood = ($25::text[])[way]
UNION ALL
SELECT NULL, 'called', called.lane, called.due_at_ms, called.job FROM called;
