-- Attempts that have ended, in the order in which they were claimed.
-- returns: claimed_at_ms, how often the job was moved
SELECT claim.claimed_at_ms, coalesce(moved.times, 0)
FROM runwick_attempt AS attempt
JOIN runwick_claim AS claim ON claim.id = attempt.claim
LEFT JOIN (SELECT job, count(*) AS times FROM bench_moved GROUP BY job) AS moved ON moved.job = attempt.job
ORDER BY claim.claimed_at_ms
