-- The attempts of these jobs that may be shown, the latest first.
-- takes: jobs (a JSON array), what may be seen as list_jobs, how many
-- returns: as runs_last
SELECT
  attempt.position, job.id, attempt.generation, attempt.number, job.kind, job.lane, job.tenant, attempt.outcome,
  attempt.code, attempt.begun_at_ms, attempt.ended_at_ms, job.payload_bytes, attempt.usage, attempt.death
FROM json_each(?1) AS asked
CROSS JOIN runwick_attempt AS attempt ON attempt.job = asked.value
CROSS JOIN runwick_job AS job ON job.position = attempt.job
WHERE ?2 IS NULL
  OR job.lane IN (SELECT value FROM json_each(?2))
  OR coalesce(job.tenant, '') IN (SELECT value FROM json_each(?3))
  OR (job.lane, coalesce(job.tenant, '')) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?4))
ORDER BY attempt.position DESC
LIMIT ?5;
