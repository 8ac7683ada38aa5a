-- Jobs that are no longer live.
-- takes: jobs (a JSON array)
DELETE FROM runwick_hot WHERE job IN (SELECT value FROM json_each(?1));
