-- What operators did, in the order of the commits, as `events` tells it: what is another application's stands in between
-- without an actor.
-- takes: the gate's $1 to $3; name of the application; xid and position behind which to look, how many at most
-- returns: whether that stands in front of all that is open; xid, position, at_ms, actor, its name for people, its
--          scheme, action, job, generation, before, after, reason, command id, what else it was about (all NULL in the one row of
--          an empty page); in order
SELECT
  gate.open_xid > $5::text::xid8, audit.xid::text::bigint, audit.position, audit.at_ms,
  CASE WHEN audit.application = gate.application THEN audit.actor END,
  audit.actor_display, audit.actor_scheme, audit.action, audit.job, audit.generation, audit.before, audit.after,
  audit.reason, audit.command_id, audit.target
FROM (
  SELECT pg_snapshot_xmin(pg_current_snapshot()) AS open_xid,
    (SELECT application.id FROM runwick.application AS application WHERE application.name = $4) AS application
  WHERE runwick.gate($1, $2::integer, NULL, 'audit', $3, NULL)
) AS gate
LEFT JOIN LATERAL (
  SELECT audit.*
  FROM runwick.audit AS audit
  WHERE (audit.xid, audit.position) > ($5::text::xid8, $6) AND audit.xid < gate.open_xid
  ORDER BY audit.xid, audit.position
  LIMIT $7
) AS audit ON true;
