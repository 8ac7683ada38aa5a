-- Whether an operation has created its job.
-- takes: application (its name), job id, operation_id
-- returns: one row when it has
SELECT 1
FROM runwick_job AS job
JOIN runwick_application AS application ON application.id = job.application
WHERE job.id = ?2 AND job.operation_id = ?3 AND application.name = ?1;
