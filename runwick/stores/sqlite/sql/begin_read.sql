-- The payload of an attempt that has begun, while its lease holds.
-- takes: job, claim_token, now_ms
-- returns: application, executions, payload; no row when it is no longer the caller's
SELECT hot.application, hot.executions, job.payload
FROM runwick_hot AS hot
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
CROSS JOIN runwick_job AS job ON job.position = hot.job
WHERE hot.job = ?1 AND claim.token = ?2 AND hot.lease_until_ms > ?3 AND hot.state = 'running';
