-- Those of some jobs that a list shows, as they stand. A place is the position of the job, or of how its last generation
-- ended: another end is not how the job stands. How it stands is looked at first, for most lists ask for that.
-- takes: jobs by place (a JSON object), application; then, NULL where it does not matter: states (a JSON array), code,
--        lanes, kinds (JSON arrays), tenant, created from, created before; what may be seen: lanes, tenants ('' for none),
--        and pairs of both (JSON arrays; NULL in place of the lanes: all of it); whether ended jobs are among those asked
--        for; how many
-- returns: place, id, lane, kind, policy, tenant, created_at_ms, payload_bytes, state, code, generation, revision,
--          executions, due_at_ms (while it waits), begun_at_ms, ended_at_ms, cancel_requested_at_ms; by place, the
--          highest first
SELECT
  CAST(asked.key AS INTEGER) AS place, job.id, job.lane, job.kind, job.policy, job.tenant, job.created_at_ms,
  job.payload_bytes,
  coalesce(hot.state, closing.state) AS state,
  CASE WHEN hot.job IS NULL THEN closing.code WHEN hot.lease_until_ms IS NULL THEN hot.code END AS standing_code,
  coalesce(hot.generation, closing.generation),
  coalesce(hot.revision, closing.revision),
  coalesce(hot.executions, closing.executions),
  CASE WHEN hot.lease_until_ms IS NULL THEN hot.due_at_ms END,
  hot.begun_at_ms, closing.ended_at_ms,
  CASE WHEN hot.job IS NULL THEN closing.cancel_requested_at_ms ELSE hot.cancel_requested_at_ms END
FROM json_each(?1) AS asked
LEFT JOIN runwick_hot AS hot ON hot.job = asked.value
LEFT JOIN runwick_closing AS closing ON ?13 AND hot.job IS NULL AND closing.job = asked.value
  AND closing.generation = (SELECT max(last.generation) FROM runwick_closing AS last WHERE last.job = asked.value)
CROSS JOIN runwick_job AS job ON job.position = asked.value
WHERE (hot.job IS NOT NULL OR ?13)
  AND (CAST(asked.key AS INTEGER) = asked.value OR CAST(asked.key AS INTEGER) = closing.position)
  AND (?3 IS NULL OR coalesce(hot.state, closing.state) IN (SELECT value FROM json_each(?3)))
  AND (?4 IS NULL OR standing_code = ?4)
  AND job.application = ?2
  AND (?5 IS NULL OR job.lane IN (SELECT value FROM json_each(?5)))
  AND (?6 IS NULL OR job.kind IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR job.tenant = ?7)
  AND (?8 IS NULL OR job.created_at_ms >= ?8)
  AND (?9 IS NULL OR job.created_at_ms < ?9)
  AND (
    ?10 IS NULL
    OR job.lane IN (SELECT value FROM json_each(?10))
    OR coalesce(job.tenant, '') IN (SELECT value FROM json_each(?11))
    OR (job.lane, coalesce(job.tenant, '')) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?12))
  )
ORDER BY 1 DESC
LIMIT ?14;
