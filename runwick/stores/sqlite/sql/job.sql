-- One job as it stands: by its hot row while it is live, else by its last closing.
-- takes: application (its name), id
-- returns: position, name, version, queue, priority, tenant, created_at_ms, max_executions, state, code, generation,
--          revision, executions, due_at_ms (while it waits), ended_at_ms (when it ended), expires_at_ms (while it lives),
--          cancel_requested_at_ms, crashes, and of the attempt that holds it worker, first_attempt_id, begun_at_ms;
--          payload_bytes
SELECT
  job.position, kind.name, kind.version, lane.queue, lane.priority, job.tenant, job.created_at_ms,
  policy.json ->> 'max_executions',
  coalesce(hot.state, closing.state),
  CASE WHEN hot.job IS NULL THEN closing.code WHEN hot.lease_until_ms IS NULL THEN hot.code END,
  coalesce(hot.generation, closing.generation),
  coalesce(hot.revision, closing.revision),
  coalesce(hot.executions, closing.executions),
  CASE WHEN hot.lease_until_ms IS NULL THEN hot.due_at_ms END,
  CASE WHEN hot.job IS NULL THEN closing.ended_at_ms END,
  hot.expires_at_ms,
  CASE WHEN hot.job IS NULL THEN closing.cancel_requested_at_ms ELSE hot.cancel_requested_at_ms END,
  coalesce(hot.crashes, 0),
  claim.worker, claim.first_attempt_id, hot.begun_at_ms, job.payload_bytes
FROM runwick_job AS job
JOIN runwick_application AS application ON application.id = job.application
JOIN runwick_kind AS kind ON kind.id = job.kind
JOIN runwick_lane AS lane ON lane.id = job.lane
JOIN runwick_policy AS policy ON policy.id = job.policy
LEFT JOIN runwick_hot AS hot ON hot.job = job.position
LEFT JOIN runwick_claim AS claim ON claim.id = hot.claim
LEFT JOIN runwick_closing AS closing ON closing.job = job.position
  AND closing.generation = (SELECT max(last.generation) FROM runwick_closing AS last WHERE last.job = job.position)
WHERE job.id = ?2 AND application.name = ?1;
