-- The stack that somebody asked for.
-- takes: attempt_id, worker, answered_at_ms, text
UPDATE runwick_look SET answered_at_ms = ?3, text = ?4 WHERE attempt_id = ?1 AND worker = ?2 AND answered_at_ms IS NULL;
