-- The attempts of the last jobs of some kinds, of which so many are looked at, the latest end first.
-- takes: the gate's $1 to $3; application;
--        $5 to $9, what is within reach: whether all; lanes with all tenants; pairs of lane and tenant; lanes without
--        a tenant;
--        $10 and $11, how many at most, how many to look at;
--        kinds
-- returns: job, generation, number, kind, lane, tenant, outcome, code, begun_at_ms, ended_at_ms, payload_bytes, usage,
--          death; in order
SELECT
  attempt.job, attempt.generation, attempt.number, attempt.kind, attempt.lane, attempt.tenant, attempt.outcome,
  attempt.code, attempt.begun_at_ms, attempt.ended_at_ms, attempt.payload_bytes, attempt.usage, attempt.death
FROM (
  SELECT attempt.*, seen.lane, seen.tenant, seen.payload_bytes
  FROM (
    SELECT walked.*
    FROM (
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($12::bigint[])[1]
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($12::bigint[])[2]
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($12::bigint[])[3]
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($12::bigint[])[4]
        ORDER BY job.position DESC
      )
    ) AS walked
    WHERE (SELECT runwick.gate($1, $2::integer, NULL, 'runs', $3, NULL))
    ORDER BY walked.position DESC
    LIMIT $11
  ) AS seen
  CROSS JOIN LATERAL (
    SELECT attempt.* FROM runwick.attempt AS attempt WHERE attempt.job = seen.id ORDER BY attempt.generation, attempt.number
  ) AS attempt
  WHERE (
    $5 OR seen.lane = ANY ($6::bigint[]) OR seen.tenant IS NULL AND seen.lane = ANY ($9::bigint[])
    OR (seen.lane, seen.tenant) IN (SELECT * FROM unnest($7::integer[], $8::text[]))
  )
  ORDER BY seen.position DESC
  LIMIT $10
) AS attempt
ORDER BY attempt.xid DESC, attempt.position DESC;
