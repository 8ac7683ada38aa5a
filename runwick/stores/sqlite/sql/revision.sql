-- The store's revision. Every transaction reads it, so that a process of another release writes nothing.
-- returns: the number of the newest migration applied, NULL when there is none
SELECT max(number) FROM runwick_migration;
