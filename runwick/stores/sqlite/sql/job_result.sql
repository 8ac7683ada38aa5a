-- What the last attempt of a generation returned.
-- takes: job, generation
-- returns: result; no row when there is none or it is no longer kept
SELECT detail.result
FROM runwick_attempt AS attempt
JOIN runwick_detail AS detail ON detail.attempt = attempt.position
WHERE attempt.job = ?1 AND attempt.generation = ?2
ORDER BY attempt.number DESC
LIMIT 1;
