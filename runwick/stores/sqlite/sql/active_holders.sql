-- Which live jobs have these active keys.
-- takes: ids (16 bytes each)
-- returns: id, job id, policy
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT hot.active, hot.job_id, job.policy
FROM asked
CROSS JOIN runwick_hot AS hot ON hot.active = substr(?1, asked.place, 16)
CROSS JOIN runwick_job AS job ON job.position = hot.job;
