-- How long this session waits for one lock; 0 is without end.
-- takes: milliseconds
SELECT set_config('lock_timeout', $1::text, false);
