-- What happened to jobs, in the order of the commits, which is that of (xid, position), in front of the oldest transaction
-- that is still open. At most so many rows are looked at of each table and told in all, whatever the application: what
-- is another's, or was done to no job, stands in between without a job.
-- takes: the gate's $1 to $3; name of the application; xid and position behind which to look, how many at most
-- returns: whether that stands in front of all that is open; xid, position, what, job, name, version, queue, priority,
--          generation, at_ms, number, state, code, attempt id, command id (all NULL in the one row of an empty page); in
--          order
WITH gate AS MATERIALIZED (
  SELECT pg_snapshot_xmin(pg_current_snapshot()) AS open_xid,
    (SELECT application.id FROM runwick.application AS application WHERE application.name = $4) AS application
  WHERE runwick.gate($1, $2::integer, NULL, 'events', $3, NULL)
), page AS MATERIALIZED (
  SELECT written.*
  FROM gate
  CROSS JOIN LATERAL (
    (
      SELECT job.xid, job.position, 'dispatched' AS what, job.id AS job, 1 AS generation, job.created_at_ms AS at_ms,
        NULL::integer AS number, NULL::text AS state, NULL::text AS code, NULL::uuid AS attempt_id,
        NULL::uuid AS command_id
      FROM runwick.job AS job
      WHERE (job.xid, job.position) > ($5::text::xid8, $6) AND job.xid < gate.open_xid
      ORDER BY job.xid, job.position
      LIMIT $7
    )
    UNION ALL
    (
      SELECT attempt.xid, attempt.position, 'attempt_ended', attempt.job, attempt.generation, attempt.ended_at_ms,
        attempt.number, attempt.outcome, attempt.code, attempt.attempt_id, NULL
      FROM runwick.attempt AS attempt
      WHERE (attempt.xid, attempt.position) > ($5::text::xid8, $6) AND attempt.xid < gate.open_xid
      ORDER BY attempt.xid, attempt.position
      LIMIT $7
    )
    UNION ALL
    (
      SELECT closing.xid, closing.position, 'job_ended', closing.job, closing.generation, closing.ended_at_ms,
        NULL, closing.state, closing.code, NULL, NULL
      FROM runwick.closing AS closing
      WHERE (closing.xid, closing.position) > ($5::text::xid8, $6) AND closing.xid < gate.open_xid
      ORDER BY closing.xid, closing.position
      LIMIT $7
    )
    UNION ALL
    (
      -- Of the same attempts those that closed their generations. The place of an end is behind its attempt's.
      SELECT attempt.xid, attempt.position + 1, 'job_ended', attempt.job, attempt.generation, attempt.ended_at_ms,
        NULL, 'succeeded', NULL, NULL, NULL
      FROM (
        SELECT attempt.*
        FROM runwick.attempt AS attempt
        WHERE (attempt.xid, attempt.position) > ($5::text::xid8, $6 - 1) AND attempt.xid < gate.open_xid
        ORDER BY attempt.xid, attempt.position
        LIMIT $7
      ) AS attempt
      WHERE attempt.revision IS NOT NULL
    )
    UNION ALL
    (
      SELECT audit.xid, audit.position, 'controlled', audit.job, audit.generation, audit.at_ms,
        NULL, audit.action, NULL, NULL, audit.command_id
      FROM runwick.audit AS audit
      WHERE (audit.xid, audit.position) > ($5::text::xid8, $6) AND audit.xid < gate.open_xid
      ORDER BY audit.xid, audit.position
      LIMIT $7
    )
  ) AS written
  ORDER BY written.xid, written.position
  LIMIT $7
)
SELECT
  gate.open_xid > $5::text::xid8, page.xid::text::bigint, page.position, page.what, job.id, job.name, job.version,
  job.queue, job.priority, page.generation, page.at_ms, page.number, page.state, page.code, page.attempt_id, page.command_id
FROM gate LEFT JOIN page ON true
LEFT JOIN LATERAL (
  SELECT job.id, kind.name, kind.version, lane.queue, lane.priority
  FROM runwick.job AS job
  JOIN runwick.kind AS kind ON kind.id = job.kind
  JOIN runwick.lane AS lane ON lane.id = job.lane
  WHERE job.id = page.job AND job.application = gate.application
  LIMIT 1
) AS job ON true;
