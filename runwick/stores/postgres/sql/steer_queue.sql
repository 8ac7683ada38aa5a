-- Pause or resume a queue, if it stands as the caller saw it, and let claims know. A queue that is open again has jobs called
-- in for the room that limits have. If the command was applied before, nothing is written. What came in between is met at the row: then the statement fails or undoes itself (RW007) with
-- nothing written, and sees it when it is run again.
-- takes: the gate's $1 to $4; application; command id, fingerprint, actor, its name for people, its scheme, reason; act:
--        'pause' or 'resume'; expected revision; what the audit says it is about; queue; how many limits to look at and
--        how many jobs to call at most
-- returns: of a command that was applied before its fingerprint and its reply; otherwise NULL and the reply, a JSON array
--          of: code, revision, before, after; and three NULLs. Then two NULLs and, of each job that was called, lane,
--          due_at_ms, job; and, if there may be more limits, NULL, 'more', two NULLs and the last one
WITH before AS MATERIALIZED (
  SELECT command.fingerprint, command.reply
  FROM runwick.command AS command
  WHERE command.application = $5 AND command.id = $6
), gate AS MATERIALIZED (
  SELECT runwick.gate(
    $1, $2::integer, CASE WHEN NOT EXISTS (SELECT FROM before) THEN $5::integer END, $12, $3, $4
  ) AND NOT EXISTS (SELECT FROM before) AS open, runwick.now_ms() AS now_ms
), judged AS MATERIALIZED (
  SELECT
    gate.now_ms, stands.revision, stands.value, asked.value AS after,
    CASE
      WHEN stands.revision IS NULL THEN 'not_found'
      WHEN stands.revision <> $13 THEN 'stale_revision'
      WHEN stands.value = asked.value THEN 'invalid_state'
    END AS code
  FROM gate
  CROSS JOIN (SELECT CASE $12 WHEN 'pause' THEN 'paused' ELSE 'open' END AS value) AS asked
  LEFT JOIN LATERAL (
    SELECT coalesce(pause.revision, 0) AS revision,
      CASE WHEN pause.since_ms IS NULL THEN 'open' ELSE 'paused' END AS value
    FROM runwick.lane AS lane
    LEFT JOIN runwick.pause AS pause ON pause.application = lane.application AND pause.queue = lane.queue
    WHERE lane.application = $5 AND lane.queue = $15
    LIMIT 1
  ) AS stands ON true
  WHERE gate.open
), changed AS (
  INSERT INTO runwick.pause AS own (application, queue, revision, since_ms)
  SELECT $5::integer, $15, judged.revision + 1, CASE judged.after WHEN 'paused' THEN judged.now_ms END
  FROM judged
  WHERE judged.code IS NULL
  ON CONFLICT (application, queue) DO UPDATE SET revision = excluded.revision, since_ms = excluded.since_ms
    WHERE own.revision = $13
  RETURNING 1
), done AS MATERIALIZED (
  SELECT judged.*
  FROM judged
  WHERE judged.code IS NULL
    AND CASE WHEN (SELECT count(*) FROM changed) = 1 THEN true ELSE runwick.undo('RW007', '') END
), raised AS (
  UPDATE runwick.intake AS intake SET revision = intake.revision + 1 FROM done WHERE intake.application = $5
), called AS MATERIALIZED (
  SELECT called.*
  FROM done
  CROSS JOIN LATERAL runwick.tend($5::integer, '00000000-0000-0000-0000-000000000000', $16, $17, false) AS called
  WHERE done.after = 'open'
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, command_id, application, actor, actor_display, actor_scheme, action, before, after, reason, target
  )
  SELECT now_ms, $6, $5::integer, $8, $9, $10, $12, value, after, $11, $14 FROM done
), reply AS MATERIALIZED (
  SELECT CASE
    WHEN code IS NULL THEN json_build_array(NULL, revision + 1, value, after)
    ELSE json_build_array(code, revision, value, NULL)
  END::text AS json
  FROM judged
), kept AS (
  INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply)
  SELECT $5::integer, $6, done.now_ms, $7, reply.json FROM done CROSS JOIN reply
)
SELECT before.fingerprint, before.reply, NULL::integer, NULL::bigint, NULL::uuid FROM before
UNION ALL
SELECT NULL, reply.json, NULL, NULL, NULL FROM reply
UNION ALL
SELECT NULL, NULL, called.lane, called.due_at_ms, called.job FROM called WHERE called.mended IS NULL
UNION ALL
SELECT NULL, 'more', NULL, NULL, last.at_limit
FROM (
  SELECT called.at_limit, count(*) OVER () AS many
  FROM called
  WHERE called.mended IS NOT NULL
  ORDER BY called.at_limit DESC
  LIMIT 1
) AS last
WHERE last.many >= $16;
