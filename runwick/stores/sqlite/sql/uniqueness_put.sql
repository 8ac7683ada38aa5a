-- Give a window key to a job. Whose it was before has no claim to it any more.
-- takes: id, application, job id, until_ms, fingerprint
INSERT INTO runwick_uniqueness (id, application, job, until_ms, fingerprint) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id) DO UPDATE SET job = ?3, until_ms = ?4, fingerprint = ?5;
