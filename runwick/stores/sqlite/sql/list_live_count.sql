-- How many jobs are live, counted up to ?1.
SELECT count(*) FROM (SELECT 1 FROM runwick_hot LIMIT ?1);
