-- Write down what was asked for, once: a dispatch that is sent again finds its job by id and changes nothing.
-- What a job has none of comes as 0 (as -1 if it is a time, for there is a time 0): binding NULL costs ten times as much.
-- takes: position, id, application, lane, kind, policy, operation_id, created_at_ms, expires_at_ms (or -1), tenant,
--        traceparent, tracestate, metadata (these four, or 0), payload_bytes, payload
INSERT INTO runwick_job (
  position, id, application, lane, kind, policy, operation_id, created_at_ms, expires_at_ms, tenant,
  traceparent, tracestate, metadata, payload_bytes, payload
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
  nullif(?9, -1), nullif(?10, 0), nullif(?11, 0), nullif(?12, 0), nullif(?13, 0), ?14, ?15)
ON CONFLICT (id) DO NOTHING;
