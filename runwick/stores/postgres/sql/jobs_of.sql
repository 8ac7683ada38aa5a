-- Jobs of some lanes, of some kinds or of some tenants, from the latest on, merged in the order that each one's index has.
-- What is not walked is given as nothing. Otherwise as `jobs`.
-- takes: the gate's $1 to $3; application;
--        $5 to $9, what is within reach: whether all; lanes with all tenants; pairs of lane and tenant; lanes without
--        a tenant;
--        $10 to $15, what is chosen: kinds, tenants, states, codes (none: all); created from, and before;
--        $16 and $17, how many at most, how many to look at;
--        position in front of which to begin; lanes, kinds, tenants to walk
-- returns: position, whether it was chosen, id, lane, kind, policy, created_at_ms, tenant, payload_bytes, state, code,
--          generation, revision, executions, due_at_ms, begun_at_ms, ended_at_ms, cancel_requested_at_ms; in order
SELECT
  listed.position, coalesce(listed.chosen, false), listed.id, listed.lane, listed.kind, listed.policy, listed.created_at_ms,
  listed.tenant, listed.payload_bytes, listed.state, listed.code, listed.generation, listed.revision, listed.executions,
  listed.due_at_ms, listed.begun_at_ms, listed.ended_at_ms, listed.cancel_requested_at_ms
FROM (
  SELECT
    seen.*, stands.*,
    seen.fits
      AND (cardinality($12::text[]) = 0 OR stands.state = ANY ($12))
      AND (cardinality($13::text[]) = 0 OR stands.code = ANY ($13)) AS chosen
  FROM (
    SELECT
      walked.*, row_number() OVER (ORDER BY walked.position DESC) AS number,
      walked.application = $4
      AND (
        $5 OR walked.lane = ANY ($6::bigint[]) OR walked.tenant IS NULL AND walked.lane = ANY ($9::bigint[])
        OR (walked.lane, walked.tenant) IN (SELECT * FROM unnest($7::integer[], $8::text[]))
      )
      AND (cardinality($10::bigint[]) = 0 OR walked.kind = ANY ($10))
      AND (cardinality($11::text[]) = 0 OR walked.tenant = ANY ($11))
      AND walked.created_at_ms >= $14 AND walked.created_at_ms < $15 AS fits
    FROM (
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.lane = ($19::bigint[])[1] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.lane = ($19::bigint[])[2] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.lane = ($19::bigint[])[3] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.lane = ($19::bigint[])[4] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.lane = ($19::bigint[])[5] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.lane = ($19::bigint[])[6] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($20::bigint[])[1] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($20::bigint[])[2] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($20::bigint[])[3] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.kind = ($20::bigint[])[4] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.tenant = ($21::text[])[1] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.tenant = ($21::text[])[2] AND job.position < $18
        ORDER BY job.position DESC
      )
      UNION ALL
      (
        SELECT job.*
        FROM runwick.job AS job
        WHERE job.tenant = ($21::text[])[3] AND job.position < $18
        ORDER BY job.position DESC
      )
    ) AS walked
    WHERE (SELECT runwick.gate($1, $2::integer, NULL, 'jobs', $3, NULL))
    ORDER BY walked.position DESC
    LIMIT $17
  ) AS seen
  CROSS JOIN LATERAL runwick.stands(CASE WHEN seen.fits THEN seen.id END) AS stands
) AS listed
WHERE listed.chosen OR listed.number = $17
ORDER BY listed.position DESC
LIMIT $16;
