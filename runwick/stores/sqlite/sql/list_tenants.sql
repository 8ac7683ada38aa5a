-- The jobs of these tenants in front of a position, the latest first, merged as list_runs does.
-- takes: application, tenants (a JSON array), position, how many
-- returns: job
WITH RECURSIVE walk (tenant, job) AS (
  SELECT asked.value,
    (SELECT max(job.position) FROM runwick_job AS job
     WHERE job.application = ?1 AND job.tenant = asked.value AND job.position < ?3)
  FROM json_each(?2) AS asked
  UNION ALL
  SELECT walk.tenant,
    (SELECT max(job.position) FROM runwick_job AS job
     WHERE job.application = ?1 AND job.tenant = walk.tenant AND job.position < walk.job)
  FROM walk
  WHERE walk.job IS NOT NULL
  ORDER BY 2 DESC
  LIMIT ?4
)
SELECT job FROM walk WHERE job IS NOT NULL;
