-- Write down when an attempt has begun, as its executor marked it. Not a change of the job: the revision stays.
-- takes: job, begun_at_ms
UPDATE runwick_hot SET begun_at_ms = ?2 WHERE job = ?1;
