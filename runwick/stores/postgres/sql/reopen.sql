-- Open the next generation of jobs that have ended, all in one go: they wait and are due, with budgets as fresh as their
-- dispatch gave them. What does not stand as the caller saw it is left alone, and so is a job whose active key another one
-- has, be it one in front of it here. If the command was applied before, nothing is written. Another transaction may just
-- be opening the same generation, or have done so and have seen it end since this one began to look, or take an active
-- key: then the statement fails at an index with nothing written, and sees it when it is run again.
-- takes: the gate's $1 to $4; application; command id, fingerprint, actor, its name for people, its scheme, reason;
--        $12 to $14, per job: id, generation, revision; act: 'retry', of what failed or was cancelled, or 'rerun', of what succeeded
-- returns: of a command that was applied before its fingerprint and its reply; otherwise NULL and the reply: a JSON array
--          with, per job, an array of: id, code, state, generation, revision, whether it is asked to stop, NULL. Then three
--          NULLs; and behind two of them, lane, due_at_ms and job of those that wait now
WITH before AS MATERIALIZED (
  SELECT command.fingerprint, command.reply
  FROM runwick.command AS command
  WHERE command.application = $5 AND command.id = $6
), gate AS MATERIALIZED (
  SELECT runwick.gate(
    $1, $2::integer, CASE WHEN NOT EXISTS (SELECT FROM before) THEN $5::integer END, $15, $3, $4
  ) AND NOT EXISTS (SELECT FROM before) AS open
), seen AS MATERIALIZED (
  SELECT
    asked.job, asked.place, asked.generation AS asked_generation, asked.revision AS asked_revision,
    coalesce(live.state, ended.state) AS state,
    coalesce(live.generation, ended.generation) AS generation,
    coalesce(live.revision, ended.revision) AS revision,
    coalesce(live.stops, false) AS stops
  FROM gate
  JOIN unnest($12::uuid[], $13::bigint[], $14::bigint[]) WITH ORDINALITY AS asked (job, generation, revision, place)
    ON gate.open
  LEFT JOIN LATERAL (
    SELECT hot.state, hot.generation, hot.revision, hot.cancel_requested_at_ms IS NOT NULL AS stops
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.application = $5
    LIMIT 1
  ) AS live ON true
  LEFT JOIN LATERAL runwick.last_end(asked.job) AS ended ON ended.application = $5
), stood AS MATERIALIZED (
  SELECT seen.*,
    CASE
      WHEN state IS NULL THEN 'not_found'
      WHEN generation <> asked_generation THEN 'stale_generation'
      WHEN revision <> asked_revision THEN 'stale_revision'
      WHEN state NOT IN ('failed', 'cancelled', 'succeeded') OR (state = 'succeeded') <> ($15 = 'rerun') THEN 'invalid_state'
    END AS code
  FROM seen
), wanted AS MATERIALIZED (
  SELECT stood.job, stood.place, own.*
  FROM stood
  CROSS JOIN LATERAL (
    SELECT job.application, job.lane, job.kind, job.payload_bytes, job.expires_at_ms - job.created_at_ms AS lives_ms,
      job.scopes IS NOT NULL OR job.rates IS NOT NULL AS limited,
      (policy.json::json ->> 'max_executions')::smallint AS max_executions,
      CASE WHEN job.active_key IS NOT NULL THEN (
        SELECT runwick.active_id(application.name, kind.name, job.active_key)
        FROM runwick.application AS application CROSS JOIN runwick.kind AS kind
        WHERE application.id = job.application AND kind.id = job.kind
      ) END AS active
    FROM runwick.job AS job JOIN runwick.policy AS policy ON policy.id = job.policy
    WHERE job.id = stood.job
    LIMIT 1  -- so that it is asked for each one
  ) AS own
  WHERE stood.code IS NULL
), judged AS MATERIALIZED (
  SELECT
    stood.job, stood.place, stood.state, stood.generation, stood.revision, stood.stops,
    CASE
      WHEN stood.code IS NOT NULL THEN stood.code
      WHEN (SELECT true FROM runwick.hot AS hot WHERE hot.active = wanted.active) IS NOT NULL
        OR EXISTS (SELECT FROM wanted AS other WHERE other.active = wanted.active AND other.place < wanted.place)
        THEN 'uniqueness_conflict'
    END AS code
  FROM stood LEFT JOIN wanted ON wanted.place = stood.place
), head AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms FROM gate
), change AS MATERIALIZED (
  SELECT judged.*, head.now_ms FROM head CROSS JOIN judged WHERE judged.code IS NULL
), opened AS (
  -- In the order of what they wait at: two that open the same jobs, or take the same keys, do not wait in a circle.
  INSERT INTO runwick.hot (
    job, due_at_ms, expires_at_ms, application, lane, kind, payload_bytes, generation, revision, max_executions, limited,
    active
  )
  SELECT
    change.job, change.now_ms, change.now_ms + wanted.lives_ms, wanted.application, wanted.lane, wanted.kind,
    wanted.payload_bytes, change.generation + 1, change.revision + 1, wanted.max_executions, wanted.limited, wanted.active
  FROM change JOIN wanted ON wanted.place = change.place
  ORDER BY wanted.active, change.job
  RETURNING lane, due_at_ms, job
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, job, command_id, application, generation, actor, actor_display, actor_scheme, action, before, after, reason
  )
  SELECT now_ms, job, $6, $5::integer, generation + 1, $8, $9, $10, $15, state, 'pending', $11
  FROM change
  WHERE (SELECT count(*) FROM opened) IS NOT NULL
  ORDER BY place
), reply AS MATERIALIZED (
  SELECT coalesce(json_agg(
    json_build_array(
      job, code,
      CASE WHEN code IS NULL THEN 'pending' ELSE state END,
      generation + (code IS NULL)::integer,
      revision + (code IS NULL)::integer,
      stops,
      NULL
    ) ORDER BY place
  )::text, '[]') AS json
  FROM judged
), kept AS (
  INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply)
  SELECT $5::integer, $6, head.now_ms, $7, reply.json
  FROM head CROSS JOIN reply
  WHERE EXISTS (SELECT FROM change)
)
SELECT before.fingerprint, before.reply, NULL::integer, NULL::bigint, NULL::uuid FROM before
UNION ALL
SELECT NULL, reply.json, NULL, NULL, NULL FROM gate JOIN reply ON gate.open
UNION ALL
SELECT NULL, NULL, opened.lane, opened.due_at_ms, opened.job FROM opened;
