-- Move the end of these leases. Not a change of the job: the revision stays.
-- takes: jobs (a JSON array), lease_until_ms
UPDATE runwick_hot SET lease_until_ms = ?2 WHERE job IN (SELECT value FROM json_each(?1));
