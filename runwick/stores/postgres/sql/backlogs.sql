-- How far behind each queue with live jobs is. What waits is counted in the index, up to a bound, without a look at its
-- rows; leased ones stand among them and are taken off again. They are found through the claims that may still hold some.
-- Of each limit's line so many are looked at.
-- takes: the gate's $1 to $3; name of the application; the bound
-- returns: queue, due, later, blocked, leased, due_at_ms of the one that has waited longest; in order
WITH asking AS MATERIALIZED (
  SELECT application.id AS application, runwick.now_ms() AS now_ms
  FROM (SELECT runwick.gate($1, $2::integer, NULL, 'backlogs', $3, NULL) AS open) AS gate
  JOIN runwick.application AS application ON gate.open AND application.name = $4
), leased AS MATERIALIZED (
  SELECT held.lane, count(*) FILTER (WHERE held.due_at_ms <= asking.now_ms) AS due,
    count(*) FILTER (WHERE held.due_at_ms > asking.now_ms) AS later
  FROM asking
  JOIN runwick.claim AS claim ON claim.application = asking.application
  CROSS JOIN LATERAL unnest(claim.jobs) AS member (job)
  CROSS JOIN LATERAL (
    SELECT hot.lane, hot.due_at_ms
    FROM runwick.hot AS hot
    WHERE hot.job = member.job AND hot.claim = claim.token
    LIMIT 1  -- so that it is asked for each member, and in no other order
  ) AS held
  GROUP BY held.lane
), blocked AS MATERIALIZED (
  SELECT held.lane, count(*) AS jobs
  FROM asking
  CROSS JOIN LATERAL (
    SELECT scope.id FROM runwick.scope AS scope WHERE scope.application = asking.application AND scope.has_line
    UNION ALL
    SELECT rate_window.id
    FROM runwick.rate_window AS rate_window
    WHERE rate_window.application = asking.application AND rate_window.has_line
  ) AS waited_for
  CROSS JOIN LATERAL (
    SELECT hot.lane FROM runwick.hot AS hot WHERE hot.line = waited_for.id LIMIT $5
  ) AS held
  GROUP BY held.lane
), counted AS MATERIALIZED (
  SELECT
    lane.queue, coalesce(leased.due, 0) + coalesce(leased.later, 0) AS leased, coalesce(blocked.jobs, 0) AS blocked,
    (
      SELECT count(*)
      FROM (
        SELECT FROM runwick.hot AS hot
        WHERE hot.lane = lane.id AND hot.line IS NULL AND hot.due_at_ms <= asking.now_ms
        LIMIT $5 + coalesce(leased.due, 0)
      ) AS one
    ) - coalesce(leased.due, 0) AS due,
    (
      SELECT count(*)
      FROM (
        SELECT FROM runwick.hot AS hot
        WHERE hot.lane = lane.id AND hot.line IS NULL AND hot.due_at_ms > asking.now_ms
        LIMIT $5 + coalesce(leased.later, 0)
      ) AS one
    ) - coalesce(leased.later, 0) AS later,
    (
      SELECT hot.due_at_ms
      FROM runwick.hot AS hot
      WHERE hot.lane = lane.id AND hot.line IS NULL AND hot.due_at_ms <= asking.now_ms AND hot.claim IS NULL
      ORDER BY hot.due_at_ms, hot.job
      LIMIT 1
    ) AS oldest_due_at_ms
  FROM asking
  JOIN runwick.lane AS lane ON lane.application = asking.application
  LEFT JOIN leased ON leased.lane = lane.id
  LEFT JOIN blocked ON blocked.lane = lane.id
)
SELECT
  queue, least(sum(due), $5)::bigint, least(sum(later), $5)::bigint, least(sum(blocked), $5)::bigint,
  least(sum(leased), $5)::bigint, min(oldest_due_at_ms)
FROM counted
GROUP BY queue
HAVING sum(due) + sum(later) + sum(blocked) + sum(leased) > 0
ORDER BY queue COLLATE "C";
