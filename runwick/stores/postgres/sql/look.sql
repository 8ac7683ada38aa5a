-- Ask for the stacks of running attempts, all in one go; once more if they were answered before. The jobs stay as they
-- are. What does not stand as the caller saw it, or has not begun as far as is known, is not looked at. If the command was
-- applied before, nothing is written.
-- takes: the gate's $1 to $4; application; command id, fingerprint, actor, its name for people, its scheme, reason;
--        $12 to $14, per job: id, generation, revision
-- returns: of a command that was applied before its fingerprint and its reply; otherwise NULL and the reply: a JSON array
--          with, per job, an array of: id, code, state, generation, revision, whether it is asked to stop, attempt id
WITH before AS MATERIALIZED (
  SELECT command.fingerprint, command.reply
  FROM runwick.command AS command
  WHERE command.application = $5 AND command.id = $6
), gate AS MATERIALIZED (
  SELECT runwick.gate(
    $1, $2::integer, CASE WHEN NOT EXISTS (SELECT FROM before) THEN $5::integer END, 'look', $3, $4
  ) AND NOT EXISTS (SELECT FROM before) AS open
), seen AS MATERIALIZED (
  SELECT
    asked.job, asked.place, asked.generation AS asked_generation, asked.revision AS asked_revision,
    coalesce(live.state, ended.state) AS state,
    coalesce(live.generation, ended.generation) AS generation,
    coalesce(live.revision, ended.revision) AS revision,
    coalesce(live.stops, false) AS stops, live.begun_at_ms, live.worker, live.claim, live.attempt_id
  FROM gate
  JOIN unnest($12::uuid[], $13::bigint[], $14::bigint[]) WITH ORDINALITY AS asked (job, generation, revision, place)
    ON gate.open
  LEFT JOIN LATERAL (
    SELECT
      hot.state, hot.generation, hot.revision, hot.begun_at_ms, hot.claim, claim.worker,
      hot.cancel_requested_at_ms IS NOT NULL AS stops,
      runwick.attempt_id(claim.first_attempt_id, array_position(claim.jobs, hot.job)) AS attempt_id
    FROM runwick.hot AS hot LEFT JOIN runwick.claim AS claim ON claim.token = hot.claim
    WHERE hot.job = asked.job AND hot.application = $5
    LIMIT 1
  ) AS live ON true
  LEFT JOIN LATERAL runwick.last_end(asked.job) AS ended ON ended.application = $5
), judged AS MATERIALIZED (
  SELECT seen.*,
    CASE
      WHEN state IS NULL THEN 'not_found'
      WHEN generation <> asked_generation THEN 'stale_generation'
      WHEN revision <> asked_revision THEN 'stale_revision'
      WHEN begun_at_ms IS NULL OR attempt_id IS NULL THEN 'invalid_state'
    END AS code
  FROM seen
), head AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms FROM gate
), change AS MATERIALIZED (
  SELECT judged.*, head.now_ms FROM head CROSS JOIN judged WHERE judged.code IS NULL
), looked AS (
  INSERT INTO runwick.look (attempt_id, job, worker, claim_token, asked_at_ms, application)
  SELECT attempt_id, job, worker, claim, now_ms, $5::integer FROM change ORDER BY attempt_id
  ON CONFLICT (attempt_id) DO UPDATE SET asked_at_ms = excluded.asked_at_ms, answered_at_ms = NULL, text = NULL
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, job, command_id, application, generation, actor, actor_display, actor_scheme, action, before, after, reason
  )
  SELECT now_ms, job, $6, $5::integer, generation, $8, $9, $10, 'look', state, state, $11 FROM change ORDER BY place
), reply AS MATERIALIZED (
  SELECT coalesce(json_agg(
    json_build_array(job, code, state, generation, revision, stops, CASE WHEN code IS NULL THEN attempt_id END)
    ORDER BY place
  )::text, '[]') AS json
  FROM judged
), kept AS (
  INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply)
  SELECT $5::integer, $6, head.now_ms, $7, reply.json
  FROM head CROSS JOIN reply
  WHERE EXISTS (SELECT FROM change)
), told AS MATERIALIZED (
  SELECT pg_notify('runwick', $5 || ':' || change.worker) FROM change
)
SELECT before.fingerprint, before.reply FROM before
UNION ALL
SELECT NULL, reply.json FROM gate JOIN reply ON gate.open WHERE (SELECT count(*) FROM told) IS NOT NULL;
