-- Move the end of the leases that still hold, say that the worker lives, and ask whether the recovery pass is due: then
-- workers that were not seen for long are forgotten. A renewal is not a change of the job, so the revision stays; it
-- never shortens a lease. Rows that somebody else's transaction holds are not waited for.
-- takes: the gate's $1 to $4; application; per lease: job, claim token; lease_ms; worker, host, process, queues (JSON),
--        executors; recovery_interval_ms, for how long a worker is remembered
-- returns: job, 'lost' or 'locked', for each lease that was not renewed; NULL, 'recover', if the pass is this worker's
WITH asked AS MATERIALIZED (
  SELECT asked.job, asked.claim, hot.lease_until_ms
  FROM unnest($6::uuid[], $7::uuid[]) AS asked (job, claim)
  LEFT JOIN LATERAL (
    SELECT hot.lease_until_ms
    FROM runwick.hot AS hot
    WHERE hot.job = asked.job AND hot.claim = asked.claim
    FOR UPDATE SKIP LOCKED
  ) AS hot ON true
), gate AS MATERIALIZED (
  -- The time is read when all rows are locked.
  SELECT runwick.gate($1, $2::integer, $5::integer, 'renew', $3, $4) AS open, runwick.now_ms() AS now_ms
  FROM (SELECT count(*) FROM asked) AS locked
), renewed AS (
  UPDATE runwick.hot AS hot SET lease_until_ms = greatest(hot.lease_until_ms, gate.now_ms + $8)
  FROM gate CROSS JOIN asked
  WHERE gate.open AND asked.lease_until_ms > gate.now_ms AND hot.job = asked.job
), present AS (
  INSERT INTO runwick.worker (id, application, host, process, queues, executors, seen_at_ms)
  SELECT $9, $5::integer, $10, $11::integer, $12, $13::integer, gate.now_ms FROM gate WHERE gate.open
  ON CONFLICT (id) DO UPDATE
    SET queues = excluded.queues, executors = excluded.executors, seen_at_ms = excluded.seen_at_ms
), due AS MATERIALIZED (
  -- A time further away than the interval can only come from a clock that was set back.
  SELECT recovery.application
  FROM gate
  CROSS JOIN LATERAL (
    SELECT recovery.application
    FROM runwick.recovery AS recovery
    WHERE gate.open AND recovery.application = $5
      AND (recovery.next_at_ms <= gate.now_ms OR recovery.next_at_ms > gate.now_ms + $14)
    FOR UPDATE SKIP LOCKED
  ) AS recovery
), pass AS (
  UPDATE runwick.recovery AS recovery SET next_at_ms = gate.now_ms + $14
  FROM gate CROSS JOIN due
  WHERE recovery.application = due.application
  RETURNING gate.now_ms
), old AS MATERIALIZED (
  SELECT worker.id
  FROM pass
  CROSS JOIN LATERAL (
    SELECT worker.id
    FROM runwick.worker AS worker
    WHERE worker.seen_at_ms < pass.now_ms - $15
    FOR UPDATE SKIP LOCKED
  ) AS worker
), forgotten AS (
  DELETE FROM runwick.worker AS worker USING old WHERE worker.id = old.id
)
SELECT
  asked.job,
  CASE WHEN asked.lease_until_ms IS NULL AND (
    SELECT true FROM runwick.hot AS hot WHERE hot.job = asked.job AND hot.claim = asked.claim
  ) THEN 'locked' ELSE 'lost' END
FROM gate CROSS JOIN asked
WHERE asked.lease_until_ms IS NULL OR asked.lease_until_ms <= gate.now_ms
UNION ALL
SELECT NULL, 'recover' FROM pass;
