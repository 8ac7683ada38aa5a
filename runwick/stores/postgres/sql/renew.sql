-- Move the end of the leases that still hold, write begun marks, say that the worker lives and what it does, answer what
-- stacks were asked for, and ask what it is to do: what to stop, what to look at, and the recovery pass if that is due;
-- then workers that were not seen for long are forgotten. Neither renewals nor marks are changes of the job, so the
-- revision stays; a renewal never shortens a lease. Rows that somebody else's transaction holds are not waited for.
-- takes: the gate's $1 to $4; application; per attempt: job, claim token, begun_at_ms (NULL: no mark); how many of them,
--        from the first on, are to be renewed; lease_ms; worker, host, process, queues (JSON), executors; what each of
--        these does (JSON, or nothing new); attempt ids and texts of stacks; recovery_interval_ms, for how long a worker
--        is remembered; for how long a stack is waited for, how many are asked for at most; which kinds it decodes
--        (JSON; NULL: as told before)
-- returns: what, job, claim token, attempt id: 'lost' or 'locked' for each lease that was not renewed, 'cancel' and
--          'look' for each attempt to stop or to look at, 'recover' if the pass is this worker's
WITH asked AS MATERIALIZED (
  SELECT asked.job, asked.claim, asked.begun_at_ms, asked.place <= $9 AS renews, hot.lease_until_ms
  FROM unnest($6::uuid[], $7::uuid[], $8::bigint[]) WITH ORDINALITY AS asked (job, claim, begun_at_ms, place)
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
  -- One update for both: of two, the second would be lost.
  UPDATE runwick.hot AS hot SET
    lease_until_ms = CASE
      WHEN asked.renews THEN greatest(hot.lease_until_ms, gate.now_ms + $10) ELSE hot.lease_until_ms
    END,
    begun_at_ms = coalesce(asked.begun_at_ms, hot.begun_at_ms)
  FROM gate CROSS JOIN asked
  WHERE gate.open AND asked.lease_until_ms > gate.now_ms AND hot.job = asked.job
    AND (asked.renews OR asked.begun_at_ms IS DISTINCT FROM hot.begun_at_ms)
), present AS (
  INSERT INTO runwick.worker AS own (id, application, host, process, queues, executors, seen_at_ms, kinds)
  SELECT $11, $5::integer, $12, $13::integer, $14, $15::integer, gate.now_ms, $23 FROM gate WHERE gate.open
  ON CONFLICT (id) DO UPDATE SET
    application = excluded.application,
    queues = excluded.queues,
    executors = excluded.executors,
    seen_at_ms = excluded.seen_at_ms,
    kinds = coalesce(excluded.kinds, own.kinds)
), told AS (
  INSERT INTO runwick.activity (worker, told_at_ms, executors)
  SELECT $11, gate.now_ms, told.executors
  FROM gate CROSS JOIN unnest($16::text[]) AS told (executors)
  WHERE gate.open
  ON CONFLICT (worker) DO UPDATE SET told_at_ms = excluded.told_at_ms, executors = excluded.executors
), answered AS (
  UPDATE runwick.look AS look SET answered_at_ms = gate.now_ms, text = answer.text
  FROM gate CROSS JOIN unnest($17::uuid[], $18::text[]) AS answer (attempt_id, text)
  WHERE gate.open AND look.attempt_id = answer.attempt_id AND look.worker = $11 AND look.answered_at_ms IS NULL
), due AS MATERIALIZED (
  -- A time further away than the interval can only come from a clock that was set back.
  SELECT recovery.application
  FROM gate
  CROSS JOIN LATERAL (
    SELECT recovery.application
    FROM runwick.recovery AS recovery
    WHERE gate.open AND recovery.application = $5
      AND (recovery.next_at_ms <= gate.now_ms OR recovery.next_at_ms > gate.now_ms + $19)
    FOR UPDATE SKIP LOCKED
  ) AS recovery
), pass AS (
  UPDATE runwick.recovery AS recovery SET next_at_ms = gate.now_ms + $19
  FROM gate CROSS JOIN due
  WHERE recovery.application = due.application
  RETURNING gate.now_ms
), old AS MATERIALIZED (
  SELECT worker.id
  FROM pass
  CROSS JOIN LATERAL (
    SELECT worker.id
    FROM runwick.worker AS worker
    WHERE worker.seen_at_ms < pass.now_ms - $20
    FOR UPDATE SKIP LOCKED
  ) AS worker
), forgotten AS (
  DELETE FROM runwick.worker AS worker USING old WHERE worker.id = old.id
), untold AS (
  DELETE FROM runwick.activity AS activity USING old WHERE activity.worker = old.id
)
SELECT
  CASE WHEN asked.lease_until_ms IS NULL AND (
    SELECT true FROM runwick.hot AS hot WHERE hot.job = asked.job AND hot.claim = asked.claim
  ) THEN 'locked' ELSE 'lost' END,
  asked.job, NULL::uuid, NULL::uuid
FROM gate CROSS JOIN asked
WHERE asked.renews AND (asked.lease_until_ms IS NULL OR asked.lease_until_ms <= gate.now_ms)
UNION ALL
SELECT 'cancel', hot.job, hot.claim, NULL
FROM runwick.hot AS hot
WHERE hot.application = $5 AND hot.cancel_requested_at_ms IS NOT NULL
  AND (SELECT claim.worker FROM runwick.claim AS claim WHERE claim.token = hot.claim) = $11
UNION ALL
(
  SELECT 'look', look.job, look.claim_token, look.attempt_id
  FROM runwick.look AS look
  WHERE look.worker = $11 AND look.answered_at_ms IS NULL AND look.attempt_id <> ALL ($17)
    AND look.asked_at_ms > (SELECT gate.now_ms FROM gate) - $21
    AND (SELECT hot.claim FROM runwick.hot AS hot WHERE hot.job = look.job) = look.claim_token
  ORDER BY look.asked_at_ms, look.attempt_id
  LIMIT $22
)
UNION ALL
SELECT 'recover', NULL, NULL, NULL FROM pass;
