-- A new store's identity, once, and what its applications are capable of from their start.
-- takes: id, created_at_ms, capabilities
INSERT INTO runwick.store (id, created_at_ms, capabilities_from_start) VALUES ($1::uuid, $2::bigint, $3::text[]);
