-- Which of these jobs are under a lease that has not run out, and whose.
-- takes: jobs (a JSON array), now_ms
-- returns: job, claim_token
SELECT hot.job, claim.token
FROM json_each(?1) AS asked
CROSS JOIN runwick_hot AS hot ON hot.job = asked.value
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
WHERE hot.lease_until_ms > ?2;
