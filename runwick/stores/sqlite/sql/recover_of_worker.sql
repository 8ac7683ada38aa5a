-- Attempts that a worker holds, whether their leases have run out or not.
-- takes: application, worker, how many
-- returns: job, cancel_requested_at_ms, holds
SELECT hot.job, hot.cancel_requested_at_ms, hot.holds
FROM runwick_hot AS hot
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
WHERE hot.application = ?1 AND hot.lease_until_ms IS NOT NULL AND claim.worker = ?2
ORDER BY hot.lease_until_ms, hot.job
LIMIT ?3;
