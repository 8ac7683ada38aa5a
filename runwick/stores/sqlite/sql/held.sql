-- Who holds these jobs, as far as they are leased.
-- takes: jobs (a JSON array)
-- returns: job, claim_token, state, application, cancel_requested_at_ms, holds
SELECT hot.job, claim.token, hot.state, hot.application, hot.cancel_requested_at_ms, hot.holds
FROM json_each(?1) AS asked
CROSS JOIN runwick_hot AS hot ON hot.job = asked.value
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim;
