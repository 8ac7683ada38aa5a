-- A rate window comes to be, unless it is there.
-- takes: id, application, kind, key, most, window_ms, created_at_ms
INSERT INTO runwick_rate_window (id, application, kind, key, most, window_ms, created_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO NOTHING;
