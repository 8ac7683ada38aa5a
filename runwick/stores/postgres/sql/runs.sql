-- The attempts that ended last, of which so many are looked at, the latest first.
-- takes: the gate's $1 to $3; application;
--        $5 to $9, what is within reach: whether all; lanes with all tenants; pairs of lane and tenant; lanes without
--        a tenant;
--        $10 and $11, how many at most, how many to look at
-- returns: job, generation, number, kind, lane, tenant, outcome, code, begun_at_ms, ended_at_ms, payload_bytes, usage,
--          death; in order
SELECT
  attempt.job, attempt.generation, attempt.number, attempt.kind, attempt.lane, attempt.tenant, attempt.outcome,
  attempt.code, attempt.begun_at_ms, attempt.ended_at_ms, attempt.payload_bytes, attempt.usage, attempt.death
FROM (
  SELECT ended.*, job.lane, job.tenant, job.payload_bytes
  FROM (
    SELECT attempt.*
    FROM runwick.attempt AS attempt
    WHERE (SELECT runwick.gate($1, $2::integer, NULL, 'runs', $3, NULL))
    ORDER BY attempt.xid DESC, attempt.position DESC
    LIMIT $11
  ) AS ended
  CROSS JOIN LATERAL (
    SELECT job.*
    FROM runwick.job AS job
    WHERE job.id = ended.job AND job.application = $4
      AND (
        $5 OR job.lane = ANY ($6::bigint[]) OR job.tenant IS NULL AND job.lane = ANY ($9::bigint[])
        OR (job.lane, job.tenant) IN (SELECT * FROM unnest($7::integer[], $8::text[]))
      )
    LIMIT 1
  ) AS job
  ORDER BY ended.xid DESC, ended.position DESC
  LIMIT $10
) AS attempt
ORDER BY attempt.xid DESC, attempt.position DESC;
