-- What a claim still holds whose answer was lost.
-- takes: claim token, bytes of a payload that comes along
-- returns: first attempt id, place in the claim (from 1), and the columns of an attempt under way; in claim order
SELECT
  claim.first_attempt_id, member.place,
  hot.job, hot.lane, hot.kind, job.policy, hot.state = 'running', hot.generation, hot.attempts, hot.executions,
  hot.max_executions, hot.unstarted, hot.crashes, hot.payload_bytes, job.created_at_ms, job.metadata, job.tenant,
  job.traceparent, job.tracestate, CASE WHEN hot.payload_bytes <= $2 THEN job.payload END
FROM runwick.claim AS claim
CROSS JOIN LATERAL unnest(claim.jobs) WITH ORDINALITY AS member (job, place)
JOIN runwick.hot AS hot ON hot.job = member.job AND hot.claim = claim.token
JOIN runwick.job AS job ON job.id = member.job
WHERE claim.token = $1
ORDER BY member.place;
