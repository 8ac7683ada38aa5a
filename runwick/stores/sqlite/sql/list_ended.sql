-- How generations ended in one way that is not success, in front of a position, the latest first.
-- takes: application, state, position, how many
-- returns: position, job
SELECT position, job
FROM runwick_closing
WHERE application = ?1 AND state = ?2 AND state <> 'succeeded' AND position < ?3
ORDER BY position DESC
LIMIT ?4;
