-- How many jobs of its rank stand in front of a job in a line, counted up to ?4.
-- takes: line, rank, job_id, how many
-- returns: count
SELECT count(*) FROM (SELECT 1 FROM runwick_hot WHERE line = ?1 AND rank = ?2 AND job_id < ?3 LIMIT ?4);
