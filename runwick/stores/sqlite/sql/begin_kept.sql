-- Whether an attempt is still reserved by the caller, so that something else keeps it from running.
-- takes: job, claim_token, now_ms
-- returns: application, cancel_requested_at_ms, holds; no row when it is no longer the caller's
SELECT hot.application, hot.cancel_requested_at_ms, hot.holds
FROM runwick_hot AS hot
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
WHERE hot.job = ?1 AND claim.token = ?2 AND hot.lease_until_ms > ?3 AND hot.state = 'reserved';
