-- What a claim still holds whose answer was lost.
-- takes: claim token, bytes of a payload that comes along
-- returns: first attempt id, place in the claim (from 1), the columns of an attempt under way, and whether its job has
--          limits of its own, how many scopes it holds, its tokens ([key, value] as declared, or NULL); in claim order
SELECT
  claim.first_attempt_id, member.place,
  hot.job, hot.lane, hot.kind, job.policy, hot.state = 'running', hot.generation, hot.attempts, hot.executions,
  hot.max_executions, hot.unstarted, hot.crashes, hot.payload_bytes, job.created_at_ms, job.metadata, job.tenant,
  job.traceparent, job.tracestate, CASE WHEN hot.payload_bytes <= $2 OR job.rates IS NOT NULL THEN job.payload END,
  hot.limited, hot.holds, (
    SELECT json_agg(json_build_array(scope.key, hold.fence) ORDER BY declared.place)
    FROM unnest(job.scopes) WITH ORDINALITY AS declared (id, place)
    JOIN runwick.hold AS hold ON hold.job = job.id AND hold.scope = declared.id AND hold.fence IS NOT NULL
    JOIN runwick.scope AS scope ON scope.id = hold.scope
  )
FROM runwick.claim AS claim
CROSS JOIN LATERAL unnest(claim.jobs) WITH ORDINALITY AS member (job, place)
JOIN runwick.hot AS hot ON hot.job = member.job AND hot.claim = claim.token
JOIN runwick.job AS job ON job.id = member.job
WHERE claim.token = $1
ORDER BY member.place;
