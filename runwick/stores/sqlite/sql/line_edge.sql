-- Where one rank of a line goes on behind so many jobs.
-- takes: line, rank, the id from which on to count, how many
-- returns: job_id; no row where there are no more
SELECT job_id FROM runwick_hot WHERE line = ?1 AND rank = ?2 AND job_id >= ?3 ORDER BY job_id LIMIT 1 OFFSET ?4;
