-- How many of these jobs simply run under this claim: nobody asked to cancel them, and they hold no scope.
-- takes: claim_token, jobs (a JSON array)
-- returns: one row: how many, their application
SELECT count(*), max(hot.application)
FROM runwick_claim AS claim
CROSS JOIN json_each(?2) AS asked
CROSS JOIN runwick_hot AS hot ON hot.job = asked.value
WHERE claim.token = ?1 AND hot.claim = claim.id AND hot.state = 'running' AND hot.cancel_requested_at_ms IS NULL
  AND hot.holds = 0;
