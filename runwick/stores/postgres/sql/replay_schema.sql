-- A schema in which migrations are replayed, in a transaction that is rolled back. Functions are not checked there: what
-- they name lies in the real one.
CREATE SCHEMA runwick_replay;
SET LOCAL search_path = runwick_replay, pg_temp;
SET LOCAL check_function_bodies = off;
