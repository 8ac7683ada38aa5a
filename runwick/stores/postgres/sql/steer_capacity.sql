-- Give a scope another capacity, if it stands as the caller saw it, and call in whom there is room for now. If the command
-- was applied before, nothing is written. What came in between is met at the row: then the statement fails or undoes
-- itself (RW007) with nothing written, and sees it when it is run again.
-- takes: the gate's $1 to $4; application; command id, fingerprint, actor, its name for people, its scheme, reason; act:
--        'set_capacity'; expected revision; what the audit says it is about; scope, capacity, how many are called at most
-- returns: of a command that was applied before its fingerprint and its reply; otherwise NULL and the reply, a JSON array
--          of: code, revision, before, after; and three NULLs. Then two NULLs and, of each job that was called, lane,
--          due_at_ms, job
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
    gate.now_ms, stands.revision, stands.capacity,
    CASE
      WHEN stands.revision IS NULL THEN 'not_found'
      WHEN stands.revision <> $13 THEN 'stale_revision'
      WHEN stands.capacity = $16 THEN 'invalid_state'
    END AS code
  FROM gate
  LEFT JOIN LATERAL (
    SELECT scope.revision, scope.capacity
    FROM runwick.scope AS scope
    WHERE scope.id = $15 AND scope.application = $5
    LIMIT 1
  ) AS stands ON true
  WHERE gate.open
), changed AS (
  UPDATE runwick.scope AS scope SET capacity = $16, revision = scope.revision + 1
  FROM judged
  WHERE judged.code IS NULL AND scope.id = $15 AND scope.revision = $13
  RETURNING scope.in_use
), done AS MATERIALIZED (
  SELECT judged.*
  FROM judged
  WHERE judged.code IS NULL
    AND CASE WHEN (SELECT count(*) FROM changed) = 1 THEN true ELSE runwick.undo('RW007', '') END
), called AS MATERIALIZED (
  SELECT called.*
  FROM done
  CROSS JOIN changed
  CROSS JOIN LATERAL runwick.call_into_scope(
    $15, ($16 - greatest(done.capacity, changed.in_use))::integer, $17::integer
  ) AS called
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, command_id, application, actor, actor_display, actor_scheme, action, before, after, reason, target
  )
  SELECT now_ms, $6, $5::integer, $8, $9, $10, $12, capacity::text, $16::text, $11, $14 FROM done
), reply AS MATERIALIZED (
  SELECT CASE
    WHEN code IS NULL THEN json_build_array(NULL, revision + 1, capacity::text, $16::text)
    ELSE json_build_array(code, revision, capacity::text, NULL)
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
SELECT NULL, NULL, called.lane, called.due_at_ms, called.job FROM called;
