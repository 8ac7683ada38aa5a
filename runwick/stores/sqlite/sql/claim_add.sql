-- Write down a claim call that takes something.
-- takes: token, first_attempt_id, worker, claimed_at_ms
-- returns: id
INSERT INTO runwick_claim (token, first_attempt_id, worker, claimed_at_ms) VALUES (?1, ?2, ?3, ?4) RETURNING id;
