-- Make the new jobs wait. A position that holds no job belongs to a dispatch that was sent before.
-- takes: position of the first job, due times in milliseconds (a JSON array, one per position)
INSERT INTO runwick_hot (
  job, application, lane, kind, state, due_at_ms, job_id, payload_bytes, expires_at_ms, max_executions, ahead
)
SELECT job.position, job.application, job.lane, job.kind, 'pending', due.value, job.id, job.payload_bytes,
  job.expires_at_ms, policy.json ->> 'max_executions', policy.json ->> 'max_executions' >= 2
FROM json_each(?2) AS due
CROSS JOIN runwick_job AS job ON job.position = ?1 + due.key
CROSS JOIN runwick_policy AS policy ON policy.id = job.policy;
