-- The attempts with the highest peak of resident memory.
-- takes: application (its name), how many
-- returns: job id, name, version, number, outcome, usage
SELECT job.id, kind.name, kind.version, attempt.number, attempt.outcome, attempt.usage
FROM runwick_attempt AS attempt
JOIN runwick_kind AS kind ON kind.id = attempt.kind
JOIN runwick_application AS application ON application.id = kind.application
JOIN runwick_job AS job ON job.position = attempt.job
WHERE application.name = ?1 AND attempt.rss_peak_bytes IS NOT NULL
ORDER BY attempt.rss_peak_bytes DESC, attempt.position
LIMIT ?2;
