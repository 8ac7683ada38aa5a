-- Attempts of an application whose lease has run out, found through the claims that are due to be looked at; or all
-- attempts of dead workers, found through all claims. A claim whose leases were renewed is put off to the first that may
-- run out, one that has none left is deleted.
-- takes: the gate's $1 to $4; application; check_at_ms and token behind which to look, how many claims, attempts at most;
--        the workers that are dead, if it is about these
-- returns: how many claims were looked at, check_at_ms and token of the last; claim token, first attempt id, place in
--          the claim (from 1), the columns of an attempt under way, without its payload, whether its job has limits of its
--          own, how many scopes it holds, and NULL (all NULL in the one row of a look that finds none); the longest
--          expired first
WITH gate AS MATERIALIZED (
  SELECT asked.*, CASE WHEN asked.of_workers THEN 9223372036854775807 ELSE asked.now_ms END AS end_ms
  FROM (
    SELECT runwick.gate($1, $2::integer, $5::integer, 'recover', $3, $4) AS open, runwick.now_ms() AS now_ms,
      cardinality($10::uuid[]) > 0 AS of_workers
  ) AS asked
), due AS MATERIALIZED (
  SELECT claim.*
  FROM gate
  CROSS JOIN LATERAL (
    SELECT claim.token, claim.check_at_ms, claim.first_attempt_id, claim.jobs
    FROM runwick.claim AS claim
    WHERE gate.open AND claim.application = $5 AND claim.check_at_ms <= gate.end_ms
      AND (claim.check_at_ms, claim.token) > ($6, $7)
      AND (NOT gate.of_workers OR claim.worker = ANY ($10))
    ORDER BY claim.check_at_ms, claim.token
    LIMIT $8
    FOR UPDATE SKIP LOCKED
  ) AS claim
), looked_at AS MATERIALIZED (
  SELECT due.*, (
    SELECT min(hot.lease_until_ms)
    FROM unnest(due.jobs) AS member (job)
    JOIN runwick.hot AS hot ON hot.job = member.job AND hot.claim = due.token
  ) AS until_ms
  FROM due
), put_off AS (
  UPDATE runwick.claim AS claim SET check_at_ms = looked_at.until_ms
  FROM gate JOIN looked_at ON NOT gate.of_workers
  WHERE claim.token = looked_at.token AND looked_at.until_ms > claim.check_at_ms
), gone AS (
  DELETE FROM runwick.claim AS claim USING looked_at
  WHERE claim.token = looked_at.token AND looked_at.until_ms IS NULL
), last AS MATERIALIZED (
  SELECT (SELECT count(*) FROM due) AS claims, due.check_at_ms, due.token
  FROM (SELECT) AS one LEFT JOIN (SELECT * FROM due ORDER BY check_at_ms DESC, token DESC LIMIT 1) AS due ON true
), expired AS (
  SELECT looked_at.token, looked_at.first_attempt_id, member.place, hot.*
  FROM gate
  JOIN looked_at ON looked_at.until_ms <= gate.end_ms
  CROSS JOIN LATERAL unnest(looked_at.jobs) WITH ORDINALITY AS member (job, place)
  JOIN runwick.hot AS hot ON hot.job = member.job AND hot.claim = looked_at.token AND hot.lease_until_ms <= gate.end_ms
  ORDER BY hot.lease_until_ms, hot.job
  LIMIT $9
)
SELECT
  last.claims, last.check_at_ms, last.token,
  expired.claim, expired.first_attempt_id, expired.place,
  expired.job, expired.lane, expired.kind, job.policy, expired.state = 'running', expired.generation, expired.attempts,
  expired.executions, expired.max_executions, expired.unstarted, expired.crashes, expired.payload_bytes,
  job.created_at_ms, job.metadata, job.tenant, job.traceparent, job.tracestate, NULL::bytea, expired.limited,
  expired.holds, NULL::json
FROM last LEFT JOIN (expired JOIN runwick.job AS job ON job.id = expired.job) ON true;
