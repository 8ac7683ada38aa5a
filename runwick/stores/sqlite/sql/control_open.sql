-- Let a finished job wait in its next generation, with budgets as fresh as its dispatch gave them.
-- takes: job, generation, revision, now_ms
INSERT INTO runwick_hot (
  job, application, lane, kind, state, generation, revision, due_at_ms, job_id, payload_bytes, expires_at_ms,
  max_executions, ahead, limited, active
)
SELECT job.position, job.application, job.lane, job.kind, 'pending', ?2, ?3, ?4, job.id, job.payload_bytes,
  ?4 + job.expires_at_ms - job.created_at_ms, policy.json ->> 'max_executions', policy.json ->> 'max_executions' >= 2
    AND need.scopes IS NULL AND need.rates IS NULL,
  CASE WHEN need.rates IS NOT NULL THEN 2 ELSE need.scopes IS NOT NULL END, need.active
FROM runwick_job AS job
CROSS JOIN runwick_policy AS policy ON policy.id = job.policy
LEFT JOIN runwick_need AS need ON need.job = job.position
WHERE job.position = ?1;
