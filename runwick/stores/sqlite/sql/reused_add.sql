-- The receipt of a dispatch that found an existing job.
-- takes: operation, application, job id, deadline_ms, drift, match
INSERT INTO runwick_reused (operation, application, job, deadline_ms, drift, match) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
