-- What a store was migrated with.
-- returns: number, name, checksum
SELECT number, name, checksum FROM runwick.migration ORDER BY number;
