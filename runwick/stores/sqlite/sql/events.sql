-- What happened to jobs behind a position, in commit order, whatever the application: four tables that are read side by
-- side. What operators did to no job stands in between, without a job.
-- takes: position, how many
-- returns: position, what, application, job id, kind, lane, generation, at_ms, number, state, code, attempt_id,
--          command_id
SELECT job.position, 'dispatched', job.application, job.id, job.kind, job.lane, 1, job.created_at_ms, NULL, NULL, NULL,
  NULL, NULL
FROM runwick_job AS job
WHERE job.position > ?1
UNION ALL
SELECT attempt.position, 'attempt_ended', job.application, job.id, job.kind, job.lane, attempt.generation,
  attempt.ended_at_ms, attempt.number, attempt.outcome, attempt.code, attempt.attempt_id, NULL
FROM runwick_attempt AS attempt
CROSS JOIN runwick_job AS job ON job.position = attempt.job
WHERE attempt.position > ?1
UNION ALL
SELECT closing.position, 'job_ended', job.application, job.id, job.kind, job.lane, closing.generation,
  closing.ended_at_ms, NULL, closing.state, closing.code, NULL, NULL
FROM runwick_closing AS closing
CROSS JOIN runwick_job AS job ON job.position = closing.job
WHERE closing.position > ?1
UNION ALL
SELECT audit.position, 'controlled', job.application, job.id, job.kind, job.lane, audit.generation, audit.at_ms, NULL,
  audit.action, NULL, NULL, audit.command_id
FROM runwick_audit AS audit
LEFT JOIN runwick_job AS job ON job.position = audit.job
WHERE audit.position > ?1
ORDER BY 1
LIMIT ?2;
