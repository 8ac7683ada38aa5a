-- What operators did, the latest first: so many rows are looked at and no more, and the last of these is told in any case,
-- for there the next page goes on. Of one job, its rows alone are looked at.
-- takes: the gate's $1 to $3; application; position in front of which to begin; job (NULL: any); action, actor, what it was
--        about, or the first word of that (NULL: any); from, and before; how many at most, how many to look at
-- returns: position, whether it was chosen, xid, at_ms, actor, its name for people, its scheme, action, job, generation,
--          before, after, reason, command id, what else it was about; in order
SELECT
  seen.position, seen.chosen, seen.xid::text::bigint, seen.at_ms, seen.actor, seen.actor_display, seen.actor_scheme,
  seen.action, seen.job, seen.generation, seen.before, seen.after, seen.reason, seen.command_id, seen.target
FROM (
  SELECT
    walked.*, row_number() OVER (ORDER BY walked.position DESC) AS number,
    walked.application IS NOT DISTINCT FROM $4
      AND ($7::text IS NULL OR walked.action = $7)
      AND ($8::text IS NULL OR walked.actor = $8)
      AND ($9::text IS NULL OR coalesce($9 IN (walked.target, split_part(walked.target, ' ', 1)), false))
      AND walked.at_ms >= $10 AND walked.at_ms < $11 AS chosen
  FROM (
    (
      SELECT audit.*
      FROM runwick.audit AS audit
      WHERE $6::uuid IS NULL AND audit.position < $5
      ORDER BY audit.position DESC
    )
    UNION ALL
    (
      SELECT audit.*
      FROM runwick.audit AS audit
      WHERE audit.job = $6::uuid AND audit.position < $5
      ORDER BY audit.position DESC
    )
  ) AS walked
  WHERE (SELECT runwick.gate($1, $2::integer, NULL, 'audited', $3, NULL))
  ORDER BY walked.position DESC
  LIMIT $13
) AS seen
WHERE seen.chosen OR seen.number = $13
ORDER BY seen.position DESC
LIMIT $12;
