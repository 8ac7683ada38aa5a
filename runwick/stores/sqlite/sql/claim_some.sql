-- These waiting jobs with all that their attempts are made of, as claim_whole.
-- takes: jobs (a JSON array), payload_max_bytes
-- returns: job, job_id, kind, policy, created_at_ms, payload (NULL when it is larger), more; in any order of rows
SELECT
  hot.job, hot.job_id, hot.kind, job.policy, job.created_at_ms,
  CASE WHEN hot.payload_bytes <= ?2 THEN job.payload END,
  CASE WHEN hot.attempts <> 0 OR hot.generation <> 1 OR hot.executions <> 0 OR hot.unstarted <> 0 OR hot.crashes <> 0
    OR hot.limited <> 0 OR hot.payload_bytes > ?2 OR hot.expires_at_ms IS NOT NULL OR job.metadata IS NOT NULL
    OR job.tenant IS NOT NULL OR job.traceparent IS NOT NULL OR job.tracestate IS NOT NULL
  THEN json_array(
    hot.limited, hot.expires_at_ms, hot.payload_bytes, hot.generation, hot.attempts, hot.executions, hot.unstarted,
    hot.crashes, job.tenant, job.traceparent, job.tracestate, CAST(job.metadata AS TEXT)
  ) END
FROM json_each(?1) AS asked
CROSS JOIN runwick_hot AS hot ON hot.job = asked.value
CROSS JOIN runwick_job AS job ON job.position = asked.value;
