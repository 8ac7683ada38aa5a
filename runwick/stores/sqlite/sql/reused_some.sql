-- Which of these operations found an existing job.
-- takes: operation ids (16 bytes each)
-- returns: operation_id, job id, match, drift
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT reused.operation, reused.job, reused.match, reused.drift
FROM asked
CROSS JOIN runwick_reused AS reused ON reused.operation = substr(?1, asked.place, 16);
