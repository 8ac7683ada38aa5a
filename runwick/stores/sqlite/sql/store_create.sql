-- A new store's identity, once per file.
-- takes: store_id, created_at_ms
INSERT INTO runwick_store (one, store_id, created_at_ms) VALUES (1, ?, ?);
