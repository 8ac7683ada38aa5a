-- What one closed attempt of a job left behind, as far as that is kept.
-- takes: job, attempt_id
-- returns: generation, error, black_box; or no row
SELECT attempt.generation, detail.error, detail.black_box
FROM runwick_attempt AS attempt
LEFT JOIN runwick_detail AS detail ON detail.attempt = attempt.position
WHERE attempt.job = ?1 AND attempt.attempt_id = ?2;
