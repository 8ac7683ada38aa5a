-- The attempts with the highest peak of resident memory.
-- takes: application (its name), how many
-- returns: job id, name, version, number, outcome, usage
SELECT job.id, kind.name, kind.version, attempt.number, attempt.outcome, attempt.usage
FROM attempt
JOIN kind ON kind.id = attempt.kind
JOIN application ON application.id = kind.application
JOIN job ON job.position = attempt.job
WHERE application.name = ?1 AND attempt.rss_peak_bytes IS NOT NULL
ORDER BY attempt.rss_peak_bytes DESC, attempt.position
LIMIT ?2;
