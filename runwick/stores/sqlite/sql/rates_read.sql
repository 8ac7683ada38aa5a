-- These rate windows, as they stand.
-- takes: ids (16 bytes each)
-- returns: id, most, window_ms, granted, promised, shift_ms, last_ms, calls, has_line
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT rate.id, rate.most, rate.window_ms, rate.granted, rate.promised, rate.shift_ms, rate.last_ms, rate.calls,
  rate.has_line
FROM asked
CROSS JOIN runwick_rate_window AS rate ON rate.id = substr(?1, asked.place, 16);
