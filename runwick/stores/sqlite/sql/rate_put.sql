-- A rate window as it stands now.
-- takes: id, granted, promised, shift_ms, last_ms, calls, has_line
UPDATE runwick_rate_window SET
  granted = ?2,
  promised = ?3,
  shift_ms = ?4,
  last_ms = ?5,
  calls = ?6,
  has_line = ?7
WHERE id = ?1;
