-- In front of which position all jobs were created before ?1. Jobs are created in the order of their positions, so that
-- halving finds it in a few steps.
-- returns: position
WITH RECURSIVE search (low, high) AS (
  SELECT 0, 1 + coalesce((SELECT max(position) FROM runwick_job), 0)
  UNION ALL
  SELECT
    CASE WHEN (
      SELECT created_at_ms FROM runwick_job WHERE position >= (low + high) / 2 ORDER BY position LIMIT 1
    ) < ?1 THEN (low + high) / 2 ELSE low END,
    CASE WHEN (
      SELECT created_at_ms FROM runwick_job WHERE position >= (low + high) / 2 ORDER BY position LIMIT 1
    ) < ?1 THEN high ELSE (low + high) / 2 END
  FROM search
  WHERE high - low > 1
)
SELECT high FROM search WHERE high - low <= 1;
