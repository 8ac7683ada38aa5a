-- What is left in some lanes. Waiting jobs are counted in the index, among which the leased ones stand too: these are
-- found through the claims and taken off.
-- takes: the gate's $1 to $3; application, lanes, kinds
-- returns: due, later, leased, undecodable, retrying, for how many milliseconds the oldest has been due
WITH asking AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms WHERE runwick.gate($1, $2::integer, NULL, 'outlook', $3, NULL)
), live AS MATERIALIZED (
  SELECT
    count(*) FILTER (WHERE hot.kind = ANY ($6::bigint[]) AND hot.due_at_ms <= asking.now_ms) AS due,
    count(*) FILTER (WHERE hot.kind = ANY ($6::bigint[]) AND hot.due_at_ms > asking.now_ms) AS later,
    count(*) FILTER (WHERE hot.kind <> ALL ($6::bigint[])) AS undecodable
  FROM asking JOIN runwick.hot AS hot ON hot.lane = ANY ($5::bigint[])
), leased AS MATERIALIZED (
  SELECT
    count(*) FILTER (WHERE held.kind = ANY ($6::bigint[]) AND held.due_at_ms <= asking.now_ms) AS due,
    count(*) FILTER (WHERE held.kind = ANY ($6::bigint[]) AND held.due_at_ms > asking.now_ms) AS later,
    count(*) FILTER (WHERE held.kind <> ALL ($6::bigint[])) AS undecodable
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
)
SELECT
  live.due - leased.due,
  live.later - leased.later,
  leased.due + leased.later,
  live.undecodable - leased.undecodable,
  (
    SELECT count(*)
    FROM unnest($5::bigint[]) AS lane (id)
    JOIN runwick.hot AS hot ON hot.lane = lane.id AND hot.due_at_ms > asking.now_ms AND hot.kind = ANY ($6::bigint[])
    WHERE hot.claim IS NULL AND hot.executions > 0
  ),
  asking.now_ms - (
    SELECT min(oldest.due_at_ms)
    FROM unnest($5::bigint[]) AS lane (id)
    CROSS JOIN LATERAL (
      SELECT hot.due_at_ms
      FROM runwick.hot AS hot
      WHERE hot.lane = lane.id AND hot.due_at_ms <= asking.now_ms
        AND hot.kind = ANY ($6::bigint[]) AND hot.claim IS NULL
      ORDER BY hot.due_at_ms, hot.job
      LIMIT 1
    ) AS oldest
  )
FROM asking CROSS JOIN live CROSS JOIN leased;
