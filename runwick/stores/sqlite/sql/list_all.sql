-- All jobs in front of a position, of whatever application, the latest first.
-- takes: position, how many
-- returns: job
SELECT position FROM runwick_job WHERE position < ?1 ORDER BY position DESC LIMIT ?2;
