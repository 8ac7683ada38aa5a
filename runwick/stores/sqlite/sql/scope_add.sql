-- A scope comes to be, unless it is there.
-- takes: id, application, kind, key, capacity, created_at_ms
INSERT INTO runwick_scope (id, application, kind, key, capacity, created_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (id) DO NOTHING;
