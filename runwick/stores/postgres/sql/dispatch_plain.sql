-- Make one job durable, as most dispatches ask for it: a statement costs by its parts, used or not. If it is there already
-- or comes after its deadline, nothing is written, and `dispatch` says what is to be said of it.
-- takes: the gate's $1 to $4; application; id, operation, lane, kind, policy, most executions, deadline; each as an array of
--        one or of none: not before, or a delay, expiry, or a time to live, tenant, traceparent, tracestate, metadata;
--        payload; whether to tell who listens
-- returns: one row if it was created
WITH gate AS MATERIALIZED (
  SELECT
    CASE
      WHEN EXISTS (SELECT FROM runwick.job AS before WHERE before.id = $6) THEN false
      ELSE runwick.gate($1, $2::integer, $5::integer, 'dispatch', $3, $4)
    END AS open,
    runwick.now_ms() AS now_ms
), created AS (
  INSERT INTO runwick.job (
    id, created_at_ms, expires_at_ms, operation_id, application, lane, kind, policy, payload_bytes,
    tenant, traceparent, tracestate, metadata, payload
  )
  SELECT
    $6, gate.now_ms, coalesce(gate.now_ms + ($16::bigint[])[1], ($15::bigint[])[1]), $7, $5, $8, $9, $10, octet_length($21),
    ($17::text[])[1], ($18::text[])[1], ($19::text[])[1], ($20::bytea[])[1], $21
  FROM gate
  WHERE gate.open AND $12 >= gate.now_ms
  ON CONFLICT (id) DO NOTHING
  RETURNING created_at_ms, expires_at_ms
)
INSERT INTO runwick.hot (job, due_at_ms, expires_at_ms, application, lane, kind, payload_bytes, max_executions)
SELECT
  $6::uuid, coalesce(created_at_ms + ($14::bigint[])[1], greatest(created_at_ms, ($13::bigint[])[1])), expires_at_ms,
  $5, $8, $9, octet_length($21), $11
FROM created
RETURNING CASE WHEN $22 THEN pg_notify('runwick', $5::text) END;
