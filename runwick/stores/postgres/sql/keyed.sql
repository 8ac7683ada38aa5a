-- What stands in the way of a dispatch with keys or limits: whether its operations were applied before, and who has its
-- keys, all of one moment. What nobody can see yet is met by `dispatch_keyed`.
-- takes: the gate's $1 to $4; application; per job: id, operation, active key, window key (NULL: it has none)
-- returns: one row per job, in order: now_ms, whether the application may have rate windows; the operation that created
--          the job; of a dispatch that found another job: that job, which key found it, whether policies differed; job
--          and policy of who has the active key; job, policy (NULL: the job is gone), fingerprint and until_ms of who has
--          the window key
WITH asked AS MATERIALIZED (
  SELECT asked.*, own.operation_id AS created_by, before.job AS reused, before.match, before.drift
  FROM unnest($6::uuid[], $7::uuid[], $8::uuid[], $9::uuid[])
    WITH ORDINALITY AS asked (id, operation, active_key, window_key, place)
  LEFT JOIN LATERAL (SELECT job.operation_id FROM runwick.job AS job WHERE job.id = asked.id LIMIT 1) AS own ON true
  LEFT JOIN LATERAL (
    SELECT reused.job, reused.match, reused.drift
    FROM runwick.reused AS reused
    WHERE reused.operation = asked.operation
    LIMIT 1
  ) AS before ON true
), gate AS MATERIALIZED (
  SELECT runwick.gate(
    $1, $2::integer,
    CASE
      WHEN EXISTS (SELECT FROM asked WHERE created_by <> operation) THEN NULL
      WHEN EXISTS (SELECT FROM asked WHERE created_by IS NULL AND reused IS NULL) THEN $5::integer
    END,
    'dispatch', $3, $4
  ) AS open, runwick.now_ms() AS now_ms
)
SELECT
  gate.now_ms, application.capabilities @> '{rate_admission}', asked.created_by, asked.reused, asked.match, asked.drift,
  live.job, live.policy, first.job, first.policy, first.fingerprint, first.until_ms
FROM gate
JOIN runwick.application AS application ON gate.open AND application.id = $5
CROSS JOIN asked
LEFT JOIN LATERAL (
  SELECT hot.job, (SELECT job.policy FROM runwick.job AS job WHERE job.id = hot.job) AS policy
  FROM runwick.hot AS hot
  WHERE hot.active = asked.active_key
  LIMIT 1
) AS live ON true
LEFT JOIN LATERAL (
  SELECT known.job, (SELECT job.policy FROM runwick.job AS job WHERE job.id = known.job) AS policy,
    known.fingerprint, known.until_ms
  FROM runwick.uniqueness AS known
  WHERE known.id = asked.window_key
  LIMIT 1
) AS first ON true
ORDER BY asked.place;
