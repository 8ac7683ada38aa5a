-- Rate windows of an application, by id. Reading does not move their time.
-- takes: application (its name), kind, the id behind which to start, how many, now_ms
-- returns: id, kind, key, most, window_ms, granted, those of them within the window, whether jobs wait
SELECT rate.id, rate.kind, rate.key, rate.most, rate.window_ms, rate.granted,
  (SELECT count(*) FROM runwick_rate_grant AS given
   WHERE given.rate_window = rate.id AND given.at_ms + rate.window_ms > max(?5 + rate.shift_ms, rate.last_ms)),
  EXISTS (SELECT 1 FROM runwick_hot AS hot WHERE hot.line = rate.id)
FROM runwick_application AS application
CROSS JOIN runwick_rate_window AS rate ON rate.application = application.id
WHERE application.name = ?1 AND rate.kind = ?2 AND rate.id > ?3
ORDER BY rate.id
LIMIT ?4;
