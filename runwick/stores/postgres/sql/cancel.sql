-- Cancel jobs, all in one go: those that wait are closed, those that are leased are asked to stop. What does not stand as
-- the caller saw it is left alone. A place that one of them was called in for, or promised, is passed on. If somebody
-- else's transaction holds one of them, or the command was applied before, nothing is written.
-- takes: the gate's $1 to $4; application; command id, fingerprint, actor, its name for people, its scheme, reason;
--        $12 to $14, per job: id, generation, revision; how many jobs to call at most
-- returns: of a command that was applied before its fingerprint and its reply; otherwise NULL and the reply, NULL if one
--          of the jobs is held by somebody. A reply is a JSON array with, per job, an array of: id, code, state,
--          generation, revision, whether it is asked to stop, NULL. Then three NULLs; and behind two of them, lane,
--          due_at_ms and job of those that were called
WITH before AS MATERIALIZED (
  SELECT command.fingerprint, command.reply
  FROM runwick.command AS command
  WHERE command.application = $5 AND command.id = $6
), gate AS MATERIALIZED (
  SELECT runwick.gate(
    $1, $2::integer, CASE WHEN NOT EXISTS (SELECT FROM before) THEN $5::integer END, 'cancel', $3, $4
  ) AND NOT EXISTS (SELECT FROM before) AS open
), seen AS MATERIALIZED (
  SELECT
    asked.job, asked.place, asked.generation AS asked_generation, asked.revision AS asked_revision,
    coalesce(live.state, ended.state) AS state,
    coalesce(live.generation, ended.generation) AS generation,
    coalesce(live.revision, ended.revision) AS revision,
    live.job IS NOT NULL AS lives, live.claim IS NOT NULL AS is_leased, live.claim, live.executions, live.called,
    live.due_at_ms,
    live.cancel_requested_at_ms IS NOT NULL AS stops,
    live.job IS NULL AND (
      SELECT true FROM runwick.hot AS hot WHERE hot.job = asked.job AND hot.application = $5
    ) IS NOT NULL AS is_locked
  FROM gate
  JOIN unnest($12::uuid[], $13::bigint[], $14::bigint[]) WITH ORDINALITY AS asked (job, generation, revision, place)
    ON gate.open
  LEFT JOIN LATERAL (
    SELECT hot.job, hot.state, hot.generation, hot.revision, hot.claim, hot.executions, hot.cancel_requested_at_ms,
      hot.called, hot.due_at_ms
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.application = $5
    FOR UPDATE SKIP LOCKED
  ) AS live ON true
  LEFT JOIN LATERAL runwick.last_end(asked.job) AS ended ON ended.application = $5
), judged AS MATERIALIZED (
  SELECT seen.*,
    CASE
      WHEN state IS NULL THEN 'not_found'
      WHEN generation <> asked_generation THEN 'stale_generation'
      WHEN revision <> asked_revision THEN 'stale_revision'
      WHEN NOT lives OR stops THEN 'invalid_state'
    END AS code
  FROM seen
), head AS MATERIALIZED (
  SELECT NOT coalesce(bool_or(is_locked), false) AS whole, runwick.now_ms() AS now_ms FROM judged
), change AS MATERIALIZED (
  SELECT judged.*, head.now_ms FROM head JOIN judged ON head.whole WHERE judged.code IS NULL
), gone AS (
  DELETE FROM runwick.hot AS hot USING change WHERE hot.job = change.job AND NOT change.is_leased
  RETURNING 1
), closed AS (
  INSERT INTO runwick.closing (
    job, generation, application, revision, executions, ended_at_ms, cancel_requested_at_ms, state, code
  )
  SELECT
    job, generation, $5::integer, revision + 1, executions, now_ms, now_ms, 'cancelled', 'cancel_requested'
  FROM change
  WHERE NOT is_leased
  RETURNING 1
), marked AS (
  UPDATE runwick.hot AS hot SET
    cancel_requested_at_ms = change.now_ms,
    revision = hot.revision + 1,
    told_xid = pg_current_xact_id()
  FROM change
  WHERE hot.job = change.job AND change.is_leased
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, job, command_id, application, generation, actor, actor_display, actor_scheme, action, before, after, reason
  )
  SELECT
    now_ms, job, $6, $5::integer, generation, $8, $9, $10, 'cancel', state,
    CASE WHEN is_leased THEN state ELSE 'cancelled' END, $11
  FROM change
  WHERE (SELECT count(*) FROM closed) IS NOT NULL  -- first what was done: positions tell what followed from what
  ORDER BY place
), reply AS MATERIALIZED (
  SELECT coalesce(json_agg(
    json_build_array(
      job, code,
      CASE WHEN code IS NULL AND NOT is_leased THEN 'cancelled' ELSE state END,
      generation,
      revision + (code IS NULL)::integer,
      is_leased AND (code IS NULL OR stops),
      NULL
    ) ORDER BY place
  )::text, '[]') AS json
  FROM judged
), kept AS (
  INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply)
  SELECT $5::integer, $6, head.now_ms, $7, reply.json
  FROM head CROSS JOIN reply
  WHERE EXISTS (SELECT FROM change)
), called AS MATERIALIZED (
  SELECT next.*
  FROM (
    SELECT array_agg(called ORDER BY called, due_at_ms, job) AS limits,
      array_agg(due_at_ms ORDER BY called, due_at_ms, job) AS dues_ms
    FROM change
    WHERE called IS NOT NULL AND NOT is_leased
      AND (SELECT count(*) FROM gone) IS NOT NULL  -- first who goes: some of them may stand in that line
  ) AS passed
  CROSS JOIN LATERAL runwick.pass_on(passed.limits, passed.dues_ms, $15::integer) AS next
), told AS MATERIALIZED (
  SELECT pg_notify('runwick', $5 || ':' || (SELECT claim.worker FROM runwick.claim AS claim WHERE claim.token = change.claim))
  FROM change
  WHERE is_leased
)
SELECT before.fingerprint, before.reply, NULL::integer, NULL::bigint, NULL::uuid FROM before
UNION ALL
SELECT NULL, CASE WHEN head.whole THEN reply.json END, NULL, NULL, NULL
FROM gate JOIN head ON gate.open CROSS JOIN reply
WHERE (SELECT count(*) FROM told) IS NOT NULL
UNION ALL
SELECT NULL, NULL, called.lane, called.due_at_ms, called.job FROM called;
