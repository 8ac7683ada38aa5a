-- What is left in some lanes. Waiting jobs are counted in the index, among which the leased ones stand too: these are
-- found through the claims and taken off. Those in lines are found through the limits that have one.
-- takes: the gate's $1 to $3; application, lanes, kinds
-- returns: due, later, leased, undecodable, postponed, for how many milliseconds the oldest has been due, blocked; waiting
--          in paused queues, which are in none of the others but leased
WITH asking AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms, runwick.paused_lanes($4::integer) AS paused
  WHERE runwick.gate($1, $2::integer, NULL, 'outlook', $3, NULL)
), live AS MATERIALIZED (
  SELECT
    count(*) FILTER (WHERE own.open AND own.decodable AND own.due) AS due,
    count(*) FILTER (WHERE own.open AND own.decodable AND NOT own.due) AS later,
    count(*) FILTER (WHERE own.open AND NOT own.decodable) AS undecodable,
    count(*) FILTER (WHERE NOT own.open) AS paused
  FROM (
    SELECT hot.lane <> ALL (asking.paused) AS open, hot.kind = ANY ($6::bigint[]) AS decodable,
      hot.due_at_ms <= asking.now_ms AS due
    FROM asking JOIN runwick.hot AS hot ON hot.lane = ANY ($5::bigint[]) AND hot.line IS NULL
  ) AS own
), leased AS MATERIALIZED (
  SELECT
    count(*) FILTER (WHERE own.open AND own.decodable AND own.due) AS due,
    count(*) FILTER (WHERE own.open AND own.decodable AND NOT own.due) AS later,
    count(*) FILTER (WHERE own.open AND NOT own.decodable) AS undecodable,
    count(*) FILTER (WHERE NOT own.open) AS paused,
    count(*) FILTER (WHERE own.decodable) AS decodable
  FROM (
    SELECT held.lane <> ALL (asking.paused) AS open, held.kind = ANY ($6::bigint[]) AS decodable,
      held.due_at_ms <= asking.now_ms AS due
    FROM asking
    JOIN runwick.claim AS claim ON claim.application = $4
    CROSS JOIN LATERAL unnest(claim.jobs) AS member (job)
    CROSS JOIN LATERAL (
      SELECT hot.lane, hot.kind, hot.due_at_ms
      FROM runwick.hot AS hot
      WHERE hot.job = member.job AND hot.claim = claim.token
      LIMIT 1  -- so that it is asked for each member, and in no other order
    ) AS held
    WHERE held.lane = ANY ($5::bigint[])
  ) AS own
), blocked AS MATERIALIZED (
  SELECT
    count(*) FILTER (WHERE own.open AND own.decodable AND own.due) AS due,
    count(*) FILTER (WHERE own.open AND own.decodable AND NOT own.due) AS later,
    count(*) FILTER (WHERE own.open AND NOT own.decodable) AS undecodable,
    count(*) FILTER (WHERE NOT own.open) AS paused,
    min(own.due_at_ms) FILTER (WHERE own.open AND own.decodable AND own.due) AS oldest_at_ms
  FROM (
    SELECT hot.lane <> ALL (asking.paused) AS open, hot.kind = ANY ($6::bigint[]) AS decodable,
      hot.due_at_ms <= asking.now_ms AS due, hot.due_at_ms
    FROM asking
    CROSS JOIN (
      SELECT scope.id FROM runwick.scope AS scope WHERE scope.application = $4 AND scope.has_line
      UNION ALL
      SELECT rate_window.id FROM runwick.rate_window AS rate_window
      WHERE rate_window.application = $4 AND rate_window.has_line
    ) AS waited_for
    CROSS JOIN LATERAL (
      SELECT hot.lane, hot.kind, hot.due_at_ms FROM runwick.hot AS hot WHERE hot.line = waited_for.id
    ) AS hot
    WHERE hot.lane = ANY ($5::bigint[])
  ) AS own
)
SELECT
  live.due - leased.due + blocked.due,
  live.later - leased.later + blocked.later,
  leased.decodable,
  live.undecodable - leased.undecodable + blocked.undecodable,
  (
    SELECT count(*)
    FROM unnest($5::bigint[]) AS lane (id)
    JOIN runwick.hot AS hot ON hot.lane = lane.id AND hot.due_at_ms > asking.now_ms AND hot.kind = ANY ($6::bigint[])
    WHERE hot.claim IS NULL AND hot.line IS NULL
      AND (hot.executions > 0 OR hot.called IS NOT NULL) AND lane.id <> ALL (asking.paused)
  ),
  asking.now_ms - least(blocked.oldest_at_ms, (
    SELECT min(oldest.due_at_ms)
    FROM unnest($5::bigint[]) AS lane (id)
    CROSS JOIN LATERAL (
      SELECT hot.due_at_ms
      FROM runwick.hot AS hot
      WHERE hot.lane = lane.id AND hot.due_at_ms <= asking.now_ms AND hot.line IS NULL
        AND hot.kind = ANY ($6::bigint[]) AND hot.claim IS NULL
      ORDER BY hot.due_at_ms, hot.job
      LIMIT 1
    ) AS oldest
    WHERE lane.id <> ALL (asking.paused)
  )),
  blocked.due,
  live.paused - leased.paused + blocked.paused
FROM asking CROSS JOIN live CROSS JOIN leased CROSS JOIN blocked;
