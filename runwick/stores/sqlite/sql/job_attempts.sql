-- The closed attempts of job ?1, oldest first.
-- returns: attempt_id, generation, number, outcome, code, begun_at_ms, ended_at_ms, usage, worker, delay_ms, death, error,
--          black_box
SELECT
  attempt.attempt_id, attempt.generation, attempt.number, attempt.outcome, attempt.code, attempt.begun_at_ms,
  attempt.ended_at_ms, attempt.usage, claim.worker, attempt.delay_ms, attempt.death, detail.error, detail.black_box
FROM runwick_attempt AS attempt
LEFT JOIN runwick_claim AS claim ON claim.id = attempt.claim
LEFT JOIN runwick_detail AS detail ON detail.attempt = attempt.position
WHERE attempt.job = ?1
ORDER BY attempt.generation, attempt.number;
