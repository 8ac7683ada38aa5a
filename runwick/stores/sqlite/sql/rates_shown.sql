-- These rate windows, as people read them.
-- takes: ids (16 bytes each), now_ms
-- returns: as rates
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT rate.id, rate.kind, rate.key, rate.most, rate.window_ms, rate.granted,
  (SELECT count(*) FROM runwick_rate_grant AS given
   WHERE given.rate_window = rate.id AND given.at_ms + rate.window_ms > max(?2 + rate.shift_ms, rate.last_ms)),
  EXISTS (SELECT 1 FROM runwick_hot AS hot WHERE hot.line = rate.id)
FROM asked
CROSS JOIN runwick_rate_window AS rate ON rate.id = substr(?1, asked.place, 16);
