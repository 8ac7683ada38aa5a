-- The store's revision, in words that every revision understands.
-- returns: the number of the newest migration applied, NULL when there is none
SELECT max(number) FROM runwick_migration;
