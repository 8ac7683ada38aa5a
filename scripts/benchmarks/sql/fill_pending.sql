-- Pending jobs, each a twin of one that an act dispatched: the same in all but its ids and times, and older than it, as
-- if 50 had come in each millisecond until then. Ids are made as the library makes them: UUIDv7, the job's being that of
-- its operation with the last bit turned over.
-- takes: the model's id, how many
WITH made AS MATERIALIZED (
  SELECT
    number,
    model.created_at_ms - ($2 - number) / 50 AS at_ms,
    lpad(to_hex(model.created_at_ms - ($2 - number) / 50), 12, '0') || '70' || lpad(to_hex(number % 50), 2, '0')
      || right(replace(gen_random_uuid()::text, '-', ''), 16) AS id
  FROM runwick.job AS model, generate_series(1, $2::bigint) AS number
  WHERE model.id = $1::uuid
), twin AS MATERIALIZED (
  SELECT
    at_ms, id::uuid AS operation_id,
    (left(id, 31) || translate(right(id, 1), '0123456789abcdef', '1032547698badcfe'))::uuid AS id
  FROM made
), asked AS (
  INSERT INTO runwick.job (
    id, created_at_ms, operation_id, expires_at_ms,
    application, lane, kind, policy, payload_bytes, tenant, traceparent, tracestate, metadata, payload
  )
  SELECT
    twin.id, twin.at_ms, twin.operation_id, model.expires_at_ms - model.created_at_ms + twin.at_ms,
    application, lane, kind, policy, payload_bytes, tenant, traceparent, tracestate, metadata, payload
  FROM twin, runwick.job AS model
  WHERE model.id = $1::uuid
)
INSERT INTO runwick.hot (
  job, due_at_ms, expires_at_ms,
  application, lane, kind, payload_bytes, max_executions
)
SELECT
  twin.id, twin.at_ms, model.expires_at_ms - model.due_at_ms + twin.at_ms,
  application, lane, kind, payload_bytes, max_executions
FROM twin, runwick.hot AS model
WHERE model.job = $1::uuid
