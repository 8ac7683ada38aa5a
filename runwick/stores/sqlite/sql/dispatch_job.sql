-- Write down what was asked for, once: a dispatch that is sent again finds its job by id and changes nothing.
-- takes: position, id, application, lane, kind, policy, operation_id, created_at_ms, expires_at_ms, tenant,
--        traceparent, tracestate, metadata, payload_bytes, payload
INSERT INTO runwick_job (
  position, id, application, lane, kind, policy, operation_id, created_at_ms, expires_at_ms, tenant,
  traceparent, tracestate, metadata, payload_bytes, payload
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
ON CONFLICT (id) DO NOTHING;
