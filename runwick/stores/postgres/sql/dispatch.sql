-- Make jobs durable, all of them or none. One that is there already was sent before and is left as it is, whatever its
-- deadline and its application's mode have become. A job that another transaction is just creating is not seen: the
-- statement then fails at the key with nothing written, and sees it when it is run again.
-- takes: the gate's $1 to $4; per job: id, operation, application, lane, kind, policy, most executions, deadline, not
--        before, or a delay, expiry, or a time to live, tenant, traceparent, tracestate, metadata, payload; whether to
--        tell who listens
-- returns: place (from 1), the operation that created the job, now_ms: of each that stands in the way; then nothing was
--          written
WITH asked AS MATERIALIZED (
  SELECT asked.*, before.operation_id AS created_by
  FROM unnest(
    $5::uuid[], $6::uuid[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
    $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::bytea[],
    $21::bytea[]
  ) WITH ORDINALITY AS asked (
    id, operation_id, application, lane, kind, policy, max_executions, deadline_ms,
    not_before_ms, delay_ms, expires_at_ms, expires_in_ms, tenant, traceparent, tracestate, metadata,
    payload, place
  )
  LEFT JOIN runwick.job AS before ON before.id = asked.id
), gate AS MATERIALIZED (
  SELECT bool_and(runwick.gate($1, $2::integer, meant.application, 'dispatch', $3, $4)) AS open, runwick.now_ms() AS now_ms
  FROM (
    SELECT unnest(coalesce(array_agg(DISTINCT application::integer), '{NULL}')) AS application
    FROM asked
    WHERE created_by IS NULL AND NOT EXISTS (SELECT FROM asked WHERE created_by <> operation_id)
  ) AS meant
), refused AS MATERIALIZED (
  SELECT asked.place, asked.created_by, gate.now_ms
  FROM gate CROSS JOIN asked
  WHERE CASE WHEN asked.created_by IS NULL THEN asked.deadline_ms < gate.now_ms ELSE created_by <> operation_id END
), fresh AS (
  SELECT asked.*, gate.now_ms
  FROM gate CROSS JOIN asked
  WHERE gate.open AND asked.created_by IS NULL AND NOT EXISTS (SELECT FROM refused)
), created AS (
  INSERT INTO runwick.job (
    id, created_at_ms, expires_at_ms, operation_id, application, lane, kind, policy, payload_bytes,
    tenant, traceparent, tracestate, metadata, payload
  )
  SELECT
    id, now_ms, coalesce(now_ms + expires_in_ms, expires_at_ms), operation_id, application, lane, kind, policy,
    octet_length(payload), tenant, traceparent, tracestate, metadata, payload
  FROM fresh
), waiting AS (
  INSERT INTO runwick.hot (job, due_at_ms, expires_at_ms, application, lane, kind, payload_bytes, max_executions)
  SELECT
    id, coalesce(now_ms + delay_ms, greatest(now_ms, not_before_ms)), coalesce(now_ms + expires_in_ms, expires_at_ms),
    application, lane, kind, octet_length(payload), max_executions
  FROM fresh
), told AS MATERIALIZED (
  SELECT pg_notify('runwick', fresh.application::text) FROM fresh WHERE $22 GROUP BY fresh.application
)
SELECT place, created_by, now_ms FROM refused WHERE (SELECT count(*) FROM told) IS NOT NULL ORDER BY place;
