-- Authorise and charge an attempt that is only reserved, while its lease holds and nothing keeps its job from running.
-- takes: job, claim_token, now_ms
UPDATE runwick_hot SET
  state = 'running',
  revision = revision + 1,
  executions = executions + 1,
  ahead = max_executions - executions - 1 >= 2 AND NOT limited
WHERE job = ?1 AND claim = (SELECT id FROM runwick_claim WHERE token = ?2)
  AND lease_until_ms > ?3 AND state = 'reserved'
  AND cancel_requested_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?3);
