-- Whose these window keys are, whether their time is over or not.
-- takes: ids (16 bytes each)
-- returns: id, job id, policy (NULL where the job is gone), fingerprint, until_ms
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT held.id, held.job, job.policy, held.fingerprint, held.until_ms
FROM asked
CROSS JOIN runwick_uniqueness AS held ON held.id = substr(?1, asked.place, 16)
LEFT JOIN runwick_job AS job ON job.id = held.job;
