-- What the attempts under way of these jobs are. A payload larger than ?2 stays where it is, but for those of jobs with
-- rate windows, where payloads come along at all.
-- takes: jobs (a JSON array), payload_max_bytes
-- returns: the columns that leased.attempt_of unpacks, in any order of rows
SELECT
  hot.job, hot.job_id, claim.first_attempt_id, claim.token, hot.lane, hot.kind, job.policy, hot.state, hot.generation,
  hot.attempts, hot.executions, hot.max_executions, hot.unstarted, hot.crashes, hot.limited, hot.holds, job.created_at_ms, job.metadata,
  job.tenant, job.traceparent, job.tracestate, hot.payload_bytes,
  CASE WHEN hot.payload_bytes <= ?2 OR hot.limited = 2 AND ?2 >= 0 THEN job.payload END
FROM json_each(?1) AS asked
CROSS JOIN runwick_hot AS hot ON hot.job = asked.value
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
CROSS JOIN runwick_job AS job ON job.position = asked.value;
