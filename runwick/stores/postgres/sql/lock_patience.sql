-- How long this transaction waits for one lock.
-- takes: milliseconds
SELECT set_config('lock_timeout', $1::text, true);
