-- Finished jobs, each a twin of one that acts dispatched, ran and settled: the same in all but its ids and times, and
-- older than it, as if 50 had come in each millisecond until then. Ids are made, and limits copied, as in fill_pending.
-- takes: the model's id as an array of one, how many
WITH made AS MATERIALIZED (
  SELECT
    ($2 - number) / 50 AS earlier_ms,
    lpad(to_hex(model.created_at_ms - ($2 - number) / 50), 12, '0') || '70' || lpad(to_hex(number % 50), 2, '0') AS time,
    right(replace(gen_random_uuid()::text, '-', ''), 16) AS chance,
    right(replace(gen_random_uuid()::text, '-', ''), 16) AS other_chance
  FROM runwick.job AS model, generate_series(1, $2::bigint) AS number
  WHERE model.id = ($1::uuid[])[1]
), twin AS MATERIALIZED (
  SELECT
    earlier_ms, (time || chance)::uuid AS operation_id, (time || other_chance)::uuid AS attempt_id,
    (time || left(chance, 15) || translate(right(chance, 1), '0123456789abcdef', '1032547698badcfe'))::uuid AS id
  FROM made
), asked AS (
  INSERT INTO runwick.job (
    id, created_at_ms, operation_id, expires_at_ms,
    application, lane, kind, policy, payload_bytes, tenant, traceparent, tracestate, metadata, payload, scopes, rates
  )
  SELECT
    twin.id, model.created_at_ms - earlier_ms, twin.operation_id, model.expires_at_ms - earlier_ms,
    application, lane, kind, policy, payload_bytes, tenant, traceparent, tracestate, metadata, payload, scopes, rates
  FROM twin, runwick.job AS model
  WHERE model.id = ($1::uuid[])[1]
), ran AS (
  INSERT INTO runwick.attempt (
    job, attempt_id, claimed_at_ms, begun_at_ms, ended_at_ms,
    generation, number, worker, delay_ms, wall_us, cpu_us, rss_peak_bytes, application, revision, kind, executions,
    outcome, code, usage, death
  )
  SELECT
    twin.id, twin.attempt_id, claimed_at_ms - earlier_ms, begun_at_ms - earlier_ms, ended_at_ms - earlier_ms,
    generation, number, worker, delay_ms, wall_us, cpu_us, rss_peak_bytes, application, revision, kind, executions,
    outcome, code, usage, death
  FROM twin, runwick.attempt AS model
  WHERE model.job = ($1::uuid[])[1]
)
INSERT INTO runwick.closing (
  job, ended_at_ms, generation, application, revision, executions, state, code
)
SELECT twin.id, ended_at_ms - earlier_ms, generation, application, revision, executions, state, code
FROM twin, runwick.closing AS model
WHERE model.job = ($1::uuid[])[1]
