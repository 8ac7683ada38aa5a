-- Attempts that have ended, in the order in which they were claimed.
-- returns: claimed_at_ms, how often the job was moved
SELECT attempt.claimed_at_ms, coalesce(moved.times, 0)
FROM runwick.attempt AS attempt
LEFT JOIN (SELECT job, count(*) AS times FROM public.bench_moved GROUP BY job) AS moved ON moved.job = attempt.job
ORDER BY attempt.claimed_at_ms
