-- Show one secret of one job, with its row in the audit trail. What was shown is not kept: a command that was applied
-- before reads again, and writes nothing; if it was used for something else, nothing is read.
-- takes: the gate's $1 to $4; application; command id, fingerprint, actor, its name for people, its scheme, reason; what
--        the audit calls it, and what else than the job it is about; job, attempt (NULL: none); what: 'payload', 'result',
--        'error', 'black_box' or 'stack'
-- returns: fingerprint of a command that was applied before; whether the job is there; payload or result; the other ones
WITH before AS MATERIALIZED (
  SELECT command.fingerprint
  FROM runwick.command AS command
  WHERE command.application = $5 AND command.id = $6
), gate AS MATERIALIZED (
  SELECT runwick.gate(
    $1, $2::integer, CASE WHEN NOT EXISTS (SELECT FROM before) THEN $5::integer END, 'reveal', $3, $4
  ) AND NOT EXISTS (SELECT FROM before WHERE before.fingerprint <> $7) AS open, runwick.now_ms() AS now_ms
), found AS MATERIALIZED (
  SELECT
    gate.now_ms, coalesce(attempt.generation, stands.generation) AS generation,
    CASE $16 WHEN 'payload' THEN job.payload WHEN 'result' THEN detail.result END AS json,
    CASE $16 WHEN 'error' THEN detail.error WHEN 'black_box' THEN detail.black_box WHEN 'stack' THEN look.text END AS text
  FROM gate
  JOIN runwick.job AS job ON gate.open AND job.id = $14 AND job.application = $5
  CROSS JOIN LATERAL runwick.stands(job.id) AS stands
  LEFT JOIN LATERAL (
    SELECT attempt.attempt_id, attempt.generation
    FROM runwick.attempt AS attempt
    WHERE attempt.job = job.id AND attempt.attempt_id = $15
    LIMIT 1
  ) AS attempt ON true
  LEFT JOIN LATERAL (
    SELECT attempt.attempt_id
    FROM runwick.attempt AS attempt
    WHERE attempt.job = job.id AND stands.state = 'succeeded'
    ORDER BY attempt.generation DESC, attempt.number DESC
    LIMIT 1
  ) AS last ON true
  LEFT JOIN runwick.detail AS detail
    ON detail.attempt = CASE $16 WHEN 'result' THEN last.attempt_id ELSE attempt.attempt_id END
  LEFT JOIN runwick.look AS look ON look.attempt_id = $15 AND look.job = job.id
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, job, command_id, application, generation, actor, actor_display, actor_scheme, action, reason, target
  )
  SELECT now_ms, $14, $6, $5::integer, generation, $8, $9, $10, $12, $11, $13
  FROM found
  WHERE NOT EXISTS (SELECT FROM before)
), kept AS (
  INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply)
  SELECT $5::integer, $6, now_ms, $7, '[]' FROM found WHERE NOT EXISTS (SELECT FROM before)
)
SELECT (SELECT before.fingerprint FROM before), found.now_ms IS NOT NULL, found.json, found.text
FROM (SELECT) AS one LEFT JOIN found ON true;
