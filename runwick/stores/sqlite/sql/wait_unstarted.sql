-- Free a row whose attempt was abandoned before it began: its number is taken back, the guard counts it. A new due time
-- moves the expiry on, as a planned retry does.
-- takes: job, due_at_ms (NULL keeps it), code
UPDATE runwick_hot AS hot SET
  state = CASE WHEN executions > 0 THEN 'retrying' ELSE 'pending' END,
  revision = revision + 1,
  due_at_ms = coalesce(?2, due_at_ms),
  code = ?3,
  attempts = attempts - 1,
  unstarted = unstarted + 1,
  expires_at_ms = CASE WHEN ?2 IS NOT NULL AND expires_at_ms IS NOT NULL THEN max(
    expires_at_ms,
    ?2 + (SELECT job.expires_at_ms - job.created_at_ms FROM runwick_job AS job WHERE job.position = hot.job)
  ) ELSE expires_at_ms END,
  holds = 0,
  claim = NULL,
  begun_at_ms = NULL,
  lease_until_ms = NULL
WHERE job = ?1;
