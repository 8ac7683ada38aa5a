-- Whether there is a store.
SELECT to_regclass('runwick.migration') IS NOT NULL;
