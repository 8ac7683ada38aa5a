-- The heads of one rank of a line, in order, as far as their lanes are not paused.
-- takes: line, rank, the id from which on to look, how many to look at, paused lanes (a JSON array), how many
-- returns: job_id, job
SELECT head.job_id, head.job
FROM (
  SELECT job_id, job, lane FROM runwick_hot WHERE line = ?1 AND rank = ?2 AND job_id >= ?3 ORDER BY job_id LIMIT ?4
) AS head
WHERE head.lane NOT IN (SELECT value FROM json_each(?5))
LIMIT ?6;
