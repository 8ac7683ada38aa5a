-- Pause a queue, or resume it.
-- takes: application, queue, revision, since_ms (NULL: it is open)
INSERT INTO runwick_pause (application, queue, revision, since_ms) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (application, queue) DO UPDATE SET revision = ?3, since_ms = ?4;
