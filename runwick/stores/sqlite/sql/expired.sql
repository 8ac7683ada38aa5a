-- Attempts of an application whose lease ran out, the longest expired first.
-- takes: application, now_ms, how many
-- returns: job, cancel_requested_at_ms, holds
SELECT job, cancel_requested_at_ms, holds
FROM runwick_hot
WHERE application = ?1 AND lease_until_ms IS NOT NULL AND lease_until_ms <= ?2
ORDER BY lease_until_ms, job
LIMIT ?3;
