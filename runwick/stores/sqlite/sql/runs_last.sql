-- Among the attempts that ended last, whatever they belong to, those that may be shown; the latest first.
-- takes: how many are looked at, application, kinds (a JSON array; NULL: all), what may be seen as list_jobs, how many
-- returns: position, job id, generation, number, kind, lane, tenant, outcome, code, begun_at_ms, ended_at_ms,
--          payload_bytes, usage, death
SELECT
  attempt.position, job.id, attempt.generation, attempt.number, job.kind, job.lane, job.tenant, attempt.outcome,
  attempt.code, attempt.begun_at_ms, attempt.ended_at_ms, job.payload_bytes, attempt.usage, attempt.death
FROM runwick_attempt AS attempt
CROSS JOIN runwick_job AS job ON job.position = attempt.job
WHERE attempt.position > (
    SELECT coalesce(max(position), 0)
    FROM (SELECT position FROM runwick_attempt ORDER BY position DESC LIMIT 1 OFFSET ?1)
  )
  AND (?3 IS NULL OR attempt.kind IN (SELECT value FROM json_each(?3)))
  AND job.application = ?2
  AND (
    ?4 IS NULL
    OR job.lane IN (SELECT value FROM json_each(?4))
    OR coalesce(job.tenant, '') IN (SELECT value FROM json_each(?5))
    OR (job.lane, coalesce(job.tenant, '')) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?6))
  )
ORDER BY attempt.position DESC
LIMIT ?7;
