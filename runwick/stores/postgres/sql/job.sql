-- A job as it stands, by its hot row while it is live, else by its last end; and its closed attempts.
-- takes: the gate's $1 to $3; name of the application, job
-- returns: one row per attempt, oldest first, or one with NULLs behind the job's columns. Of the job: name, version,
--          queue, priority, tenant, created_at_ms, policy (JSON), state, code, generation, revision, executions,
--          due_at_ms (while it waits), ended_at_ms (when it ended), expires_at_ms (while it is live),
--          cancel_requested_at_ms, crashes, and of the attempt that holds it worker, id, begun_at_ms; payload_bytes. Of
--          the attempt: id, generation, number, outcome, code, begun_at_ms, ended_at_ms, usage, worker, delay_ms, death,
--          error, black_box, result
SELECT
  kind.name, kind.version, lane.queue, lane.priority, job.tenant, job.created_at_ms, policy.json,
  coalesce(hot.state, ended.state),
  CASE WHEN hot.job IS NULL THEN ended.code WHEN hot.claim IS NULL THEN hot.code END,
  coalesce(hot.generation, ended.generation),
  coalesce(hot.revision, ended.revision),
  coalesce(hot.executions, ended.executions),
  CASE WHEN hot.claim IS NULL THEN hot.due_at_ms END,
  CASE WHEN hot.job IS NULL THEN ended.ended_at_ms END,
  hot.expires_at_ms,
  CASE WHEN hot.job IS NULL THEN ended.cancel_requested_at_ms ELSE hot.cancel_requested_at_ms END,
  coalesce(hot.crashes, 0),
  claim.worker, runwick.attempt_id(claim.first_attempt_id, array_position(claim.jobs, job.id)), hot.begun_at_ms,
  job.payload_bytes,
  attempt.attempt_id, attempt.generation, attempt.number, attempt.outcome, attempt.code, attempt.begun_at_ms,
  attempt.ended_at_ms, attempt.usage, attempt.worker, attempt.delay_ms, attempt.death, detail.error, detail.black_box,
  detail.result
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'job', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4
JOIN runwick.job AS job ON job.id = $5 AND job.application = application.id
JOIN runwick.kind AS kind ON kind.id = job.kind
JOIN runwick.lane AS lane ON lane.id = job.lane
JOIN runwick.policy AS policy ON policy.id = job.policy
LEFT JOIN runwick.hot AS hot ON hot.job = job.id
LEFT JOIN runwick.claim AS claim ON claim.token = hot.claim
LEFT JOIN LATERAL runwick.last_end(job.id) AS ended ON true
LEFT JOIN runwick.attempt AS attempt ON attempt.job = job.id
LEFT JOIN runwick.detail AS detail ON detail.attempt = attempt.attempt_id
ORDER BY attempt.generation, attempt.number;
