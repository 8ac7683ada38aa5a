-- Write down that somebody cancelled a job. It changes one that is leased; another ends in the same transaction, and that
-- is the change.
-- takes: job, cancel_requested_at_ms
UPDATE runwick_hot SET cancel_requested_at_ms = ?2, revision = revision + (claim IS NOT NULL) WHERE job = ?1;
