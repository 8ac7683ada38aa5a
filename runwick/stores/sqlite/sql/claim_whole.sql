-- The next due jobs of one kind in one lane, in claim order, with all that their attempts are made of.
-- Every column that is read costs as much as finding a row: what a plain first attempt has none of is one column, a
-- JSON array in the order of `choosing.More`, and NULL where there is none of it.
-- takes: lane, kind, now_ms, how many, payload_max_bytes
-- returns: job, job_id, kind, policy, created_at_ms, payload (NULL when it is larger), more
SELECT
  hot.job, hot.job_id, hot.kind, job.policy, job.created_at_ms,
  CASE WHEN hot.payload_bytes <= ?5 THEN job.payload END,
  CASE WHEN hot.attempts <> 0 OR hot.generation <> 1 OR hot.executions <> 0 OR hot.unstarted <> 0 OR hot.crashes <> 0
    OR hot.limited <> 0 OR hot.payload_bytes > ?5 OR hot.expires_at_ms IS NOT NULL OR job.metadata IS NOT NULL
    OR job.tenant IS NOT NULL OR job.traceparent IS NOT NULL OR job.tracestate IS NOT NULL
  THEN json_array(
    hot.limited, hot.expires_at_ms, hot.payload_bytes, hot.generation, hot.attempts, hot.executions, hot.unstarted,
    hot.crashes, job.tenant, job.traceparent, job.tracestate, CAST(job.metadata AS TEXT)
  ) END
FROM runwick_hot AS hot
CROSS JOIN runwick_job AS job ON job.position = hot.job
WHERE hot.lane = ?1 AND hot.kind = ?2 AND hot.lease_until_ms IS NULL AND hot.line IS NULL AND hot.due_at_ms <= ?3
ORDER BY hot.due_at_ms, hot.job_id
LIMIT ?4;
