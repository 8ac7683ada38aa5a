-- The receipt of an operation that found an existing job.
-- takes: application (its name), operation_id
-- returns: job id, match, drift
SELECT reused.job, reused.match, reused.drift
FROM runwick_reused AS reused
JOIN runwick_application AS application ON application.id = reused.application
WHERE reused.operation = ?2 AND application.name = ?1;
