-- Let one worker per interval through to the recovery pass. A time further away than the interval can only come from a
-- clock that was set back, and does not hold the pass up.
-- takes: application, now_ms, interval_ms
-- returns: one row for the worker that runs the pass, none for the others
INSERT INTO runwick_recovery (application, next_at_ms) VALUES (?1, ?2 + ?3)
ON CONFLICT (application) DO UPDATE SET next_at_ms = excluded.next_at_ms
  WHERE next_at_ms <= ?2 OR next_at_ms > excluded.next_at_ms
RETURNING next_at_ms;
