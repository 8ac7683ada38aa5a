-- Call jobs in for a limit that was idle: it had room, and jobs stood in its line, but nobody could be called.
-- takes: the gate's $1 to $4; the limit, how many calls it is owed, how many are called at most
-- returns: its application, and lane, due_at_ms and job of those that were called; or, with a lane of NULL, how many calls
--          it is owed still, and the limit
WITH own AS MATERIALIZED (
  SELECT scope.application FROM runwick.scope AS scope WHERE scope.id = $5
  UNION ALL
  SELECT rate_window.application FROM runwick.rate_window AS rate_window WHERE rate_window.id = $5
), gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, own.application, 'tend', $3, $4) AS open, own.application FROM own
)
SELECT gate.application, called.*
FROM gate CROSS JOIN LATERAL runwick.call_again($5, $6::integer, $7::integer) AS called
WHERE gate.open;
