-- These jobs hold nothing any more.
-- takes: jobs (a JSON array)
DELETE FROM runwick_hold WHERE job IN (SELECT value FROM json_each(?1));
