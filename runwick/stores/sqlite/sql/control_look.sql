-- Ask for the stack of an attempt, once more if it was answered before.
-- takes: attempt_id, job, application, worker, claim_token, asked_at_ms
INSERT INTO runwick_look (attempt_id, job, application, worker, claim_token, asked_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (attempt_id) DO UPDATE SET asked_at_ms = ?6, answered_at_ms = NULL, text = NULL;
