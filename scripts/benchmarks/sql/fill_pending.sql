-- Pending jobs, each a twin of one that an act dispatched, of several in turn: the same in all but its ids and times, and
-- older than it, as if 50 had come in each millisecond until then. Ids are made as the library makes them: UUIDv7, the
-- job's being that of its operation with the last bit turned over. Their limits are the model's; keys are not copied, for
-- no two live jobs have the same.
-- takes: the models' ids, how many
WITH made AS MATERIALIZED (
  SELECT
    model.id AS model,
    model.created_at_ms - ($2 - number) / 50 AS at_ms,
    lpad(to_hex(model.created_at_ms - ($2 - number) / 50), 12, '0') || '70' || lpad(to_hex(number % 50), 2, '0')
      || right(replace(gen_random_uuid()::text, '-', ''), 16) AS id
  FROM generate_series(1, $2::bigint) AS number
  JOIN runwick.job AS model ON model.id = ($1::uuid[])[1 + number % cardinality($1::uuid[])]
), twin AS MATERIALIZED (
  SELECT
    model, at_ms, id::uuid AS operation_id,
    (left(id, 31) || translate(right(id, 1), '0123456789abcdef', '1032547698badcfe'))::uuid AS id
  FROM made
), asked AS (
  INSERT INTO runwick.job (
    id, created_at_ms, operation_id, expires_at_ms,
    application, lane, kind, policy, payload_bytes, tenant, traceparent, tracestate, metadata, payload, scopes, rates
  )
  SELECT
    twin.id, twin.at_ms, twin.operation_id, model.expires_at_ms - model.created_at_ms + twin.at_ms,
    application, lane, kind, policy, payload_bytes, tenant, traceparent, tracestate, metadata, payload, scopes, rates
  FROM twin JOIN runwick.job AS model ON model.id = twin.model
)
INSERT INTO runwick.hot (
  job, due_at_ms, expires_at_ms,
  application, lane, kind, payload_bytes, max_executions, limited
)
SELECT
  twin.id, twin.at_ms, model.expires_at_ms - model.due_at_ms + twin.at_ms,
  application, lane, kind, payload_bytes, max_executions, limited
FROM twin JOIN runwick.hot AS model ON model.job = twin.model
