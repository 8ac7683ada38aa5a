-- How many jobs stand in a line, counted up to ?2.
-- takes: line, how many
-- returns: count
SELECT count(*) FROM (SELECT 1 FROM runwick_hot WHERE line = ?1 LIMIT ?2);
