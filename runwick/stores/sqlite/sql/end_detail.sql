-- What an attempt left behind.
-- takes: attempt, ended_at_ms, error, result, black_box
INSERT INTO runwick_detail (attempt, ended_at_ms, error, result, black_box) VALUES (?1, ?2, ?3, ?4, ?5);
