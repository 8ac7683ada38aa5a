-- The stack of an attempt of a job, once it is there.
-- takes: job, attempt_id
-- returns: text (NULL while it has not come); or no row
SELECT text FROM runwick_look WHERE attempt_id = ?2 AND job = ?1;
