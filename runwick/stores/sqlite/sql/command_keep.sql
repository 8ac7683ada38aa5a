-- Keep the answer to a command that changed something.
-- takes: application, id, fingerprint, reply, at_ms
INSERT INTO runwick_command (application, id, fingerprint, reply, at_ms) VALUES (?1, ?2, ?3, ?4, ?5);
