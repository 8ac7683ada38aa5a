-- Rate windows of one kind of an application, by id. Reading does not move their time.
-- takes: the gate's $1 to $3; name of the application, kind, id behind which to look, how many at most
-- returns: id, kind, key, most, window_ms, granted, of these within the window that ends now, whether jobs stand in its line
SELECT
  own.id, own.kind, own.key, own.most, own.window_ms, own.granted,
  (
    SELECT count(*)
    FROM runwick.rate_grant AS made
    WHERE made.rate_window = own.id
      AND made.at_ms + own.window_ms > greatest(gate.now_ms + own.shift_ms, own.last_ms)
  ),
  EXISTS (SELECT FROM runwick.hot AS hot WHERE hot.line = own.id LIMIT 1)
FROM (
  SELECT runwick.now_ms() AS now_ms WHERE runwick.gate($1, $2::integer, NULL, 'rates', $3, NULL)
) AS gate
JOIN runwick.application AS application ON application.name = $4
CROSS JOIN LATERAL (
  SELECT rate_window.*
  FROM runwick.rate_window AS rate_window
  WHERE rate_window.application = application.id AND rate_window.kind = $5 AND rate_window.id > $6
  ORDER BY rate_window.id
  LIMIT $7
) AS own
ORDER BY own.id;
