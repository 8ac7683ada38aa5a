-- End attempts that succeeded and leave nothing but numbers behind, all of them or none: most settlements are such, and a
-- statement costs by its parts, used or not. If one is not the caller's, not free, not running, asked to stop or holds a
-- scope, nothing is written, and `settle` says what is to be said of each.
-- takes: the gate's $1 to $4; application;
--        $6 to $13, per attempt: job, attempt id, its claim's place (from 1), begun_at_ms, wall_us, cpu_us,
--        rss_peak_bytes, usage;
--        $14 to $16, per claim: token, worker, time;
--        $17: claims of which nothing is left
-- returns: how many could be ended; no row when all of them are
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'settle', $3, $4) AS open, runwick.now_ms() AS now_ms
), member AS MATERIALIZED (
  SELECT
    asked.job, hot.generation, hot.attempts, asked.place, hot.application, hot.revision, hot.executions, hot.kind,
    asked.attempt_id, coalesce(asked.begun_at_ms, hot.begun_at_ms) AS begun_at_ms, asked.wall_us, asked.cpu_us,
    asked.rss_peak_bytes, asked.usage
  FROM gate CROSS JOIN unnest(
    $6::uuid[], $7::uuid[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[]
  ) AS asked (job, attempt_id, place, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage)
  CROSS JOIN LATERAL (
    SELECT hot.generation, hot.attempts, hot.application, hot.revision, hot.executions, hot.kind,
      hot.begun_at_ms
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.claim = ($14::uuid[])[asked.place] AND hot.state = 'running'
      AND hot.cancel_requested_at_ms IS NULL AND hot.holds = 0 AND gate.open
    FOR UPDATE SKIP LOCKED
  ) AS hot
), head AS MATERIALIZED (
  SELECT count(*) AS found, count(*) = cardinality($6) AS whole FROM member
), attempted AS (
  INSERT INTO runwick.attempt (
    job, generation, number, attempt_id, worker, claimed_at_ms, begun_at_ms, ended_at_ms, wall_us, cpu_us,
    rss_peak_bytes, application, revision, kind, executions, outcome, usage
  )
  SELECT
    job, generation, attempts, attempt_id, ($15::uuid[])[place], ($16::bigint[])[place], begun_at_ms,
    (SELECT gate.now_ms FROM gate), wall_us, cpu_us, rss_peak_bytes, application, revision + 1, kind, executions,
    'succeeded', usage
  FROM member
  WHERE (SELECT head.whole FROM head)
), ended AS (
  DELETE FROM runwick.hot AS hot USING member WHERE hot.job = member.job AND (SELECT head.whole FROM head)
), finished AS (
  DELETE FROM runwick.claim AS claim USING head WHERE head.whole AND claim.token = ANY ($17::uuid[])
)
SELECT found
FROM head
WHERE NOT whole;
