-- Live jobs in front of a position, of whatever application, the latest first.
-- takes: position, how many
-- returns: job
SELECT job FROM runwick_hot WHERE job < ?1 ORDER BY job DESC LIMIT ?2;
