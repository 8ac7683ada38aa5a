-- Record a migration, in the transaction that applies it.
-- takes: number, name, checksum, applied_at_ms
INSERT INTO runwick.migration (number, name, checksum, applied_at_ms) VALUES ($1::integer, $2, $3, $4::bigint);
