-- Record a migration, in the transaction that applies it.
-- takes: number, name, checksum, applied_at_ms
INSERT INTO runwick_migration (number, name, checksum, applied_at_ms) VALUES (?, ?, ?, ?);
