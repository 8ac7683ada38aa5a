-- What a file was migrated with.
-- returns: number, name, checksum
SELECT number, name, checksum FROM runwick_migration ORDER BY number;
