-- The payload of an attempt that has begun, while its lease holds.
-- takes: job, claim_token, now_ms
-- returns: executions, payload; no row when it is no longer the caller's
SELECT hot.executions, job.payload
FROM hot
CROSS JOIN claim ON claim.id = hot.claim
CROSS JOIN job ON job.position = hot.job
WHERE hot.job = ?1 AND claim.token = ?2 AND hot.lease_until_ms > ?3 AND hot.state = 'running';
