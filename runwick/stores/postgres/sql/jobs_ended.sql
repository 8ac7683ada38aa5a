-- Jobs that stand in one end state, which is not success, from the latest end on. Ends that are not how their jobs stand
-- any more are passed over. Otherwise as `jobs`.
-- takes: the gate's $1 to $3; application;
--        $5 to $9, what is within reach: whether all; lanes with all tenants; pairs of lane and tenant; lanes without
--        a tenant;
--        $10 to $15, what is chosen: kinds, tenants, states, codes (none: all); created from, and before;
--        $16 and $17, how many at most, how many to look at;
--        position in front of which to begin, state
-- returns: position, whether it was chosen, id, lane, kind, policy, created_at_ms, tenant, payload_bytes, state, code,
--          generation, revision, executions, due_at_ms, begun_at_ms, ended_at_ms, cancel_requested_at_ms; in order
SELECT
  listed.place, coalesce(listed.chosen, false), listed.id, listed.lane, listed.kind, listed.policy, listed.created_at_ms,
  listed.tenant, listed.payload_bytes, listed.state, listed.code, listed.generation, listed.revision, listed.executions,
  listed.due_at_ms, listed.begun_at_ms, listed.ended_at_ms, listed.cancel_requested_at_ms
FROM (
  SELECT
    seen.*, stands.*,
    seen.fits
      AND stands.generation = seen.ended_generation
      AND (cardinality($12::text[]) = 0 OR stands.state = ANY ($12))
      AND (cardinality($13::text[]) = 0 OR stands.code = ANY ($13)) AS chosen
  FROM (
    SELECT
      job.*, ended.position AS place, ended.generation AS ended_generation, ended.number,
      job.application = $4
      AND (
        $5 OR job.lane = ANY ($6::bigint[]) OR job.tenant IS NULL AND job.lane = ANY ($9::bigint[])
        OR (job.lane, job.tenant) IN (SELECT * FROM unnest($7::integer[], $8::text[]))
      )
      AND (cardinality($10::bigint[]) = 0 OR job.kind = ANY ($10))
      AND (cardinality($11::text[]) = 0 OR job.tenant = ANY ($11))
      AND job.created_at_ms >= $14 AND job.created_at_ms < $15 AS fits
    FROM (
      SELECT
        closing.job, closing.position, closing.generation,
        row_number() OVER (ORDER BY closing.position DESC) AS number,
        cardinality($13::text[]) = 0 OR closing.code = ANY ($13) AS fits
      FROM runwick.closing AS closing
      WHERE (SELECT runwick.gate($1, $2::integer, NULL, 'jobs', $3, NULL))
        AND closing.application = $4 AND closing.state = $19 AND closing.state <> 'succeeded' AND closing.position < $18
      ORDER BY closing.position DESC
      LIMIT $17
    ) AS ended
    LEFT JOIN LATERAL (
      SELECT job.* FROM runwick.job AS job WHERE ended.fits AND job.id = ended.job LIMIT 1
    ) AS job ON true
  ) AS seen
  CROSS JOIN LATERAL runwick.stands(CASE WHEN seen.fits THEN seen.id END) AS stands
) AS listed
WHERE listed.chosen OR listed.number = $17
ORDER BY listed.place DESC
LIMIT $16;
