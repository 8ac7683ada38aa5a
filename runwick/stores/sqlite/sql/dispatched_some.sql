-- Which operations created these jobs.
-- takes: job ids (16 bytes each)
-- returns: job id, operation_id
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT job.id, job.operation_id
FROM asked
CROSS JOIN runwick_job AS job ON job.id = substr(?1, asked.place, 16);
