-- What an attempt left behind.
-- takes: attempt, ended_at_ms, error, result
INSERT INTO runwick_detail (attempt, ended_at_ms, error, result) VALUES (?1, ?2, ?3, ?4);
