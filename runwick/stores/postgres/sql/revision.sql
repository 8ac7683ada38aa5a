-- The store's revision, whatever release made it.
-- returns: the number of the newest migration applied, NULL when there is none
SELECT max(number) FROM runwick.migration;
