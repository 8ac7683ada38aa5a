-- Attempts of a worker whose job somebody cancelled, of which hardly ever one stands.
-- takes: application, worker
-- returns: job, claim_token
SELECT hot.job, claim.token
FROM runwick_hot AS hot
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
WHERE hot.application = ?1 AND hot.cancel_requested_at_ms IS NOT NULL AND claim.worker = ?2;
