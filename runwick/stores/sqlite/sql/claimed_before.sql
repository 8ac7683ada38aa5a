-- What a claim still holds whose answer was lost. It reads the application's leases, for the rare claim sent twice.
-- takes: application, claim
-- returns: lane, due_at_ms, job_id, job
SELECT lane, due_at_ms, job_id, job
FROM runwick_hot
WHERE application = ?1 AND lease_until_ms IS NOT NULL AND claim = ?2;
