-- Free a row after an attempt that left a row in the history. A planned retry moves the expiry on: the job gets as long
-- from its new due time as it had from its creation.
-- takes: job, due_at_ms (NULL keeps it), code, crashed (0 or 1), the time from which a new expiry counts
UPDATE runwick_hot AS hot SET
  state = CASE WHEN executions > 0 THEN 'retrying' ELSE 'pending' END,
  revision = revision + 1,
  due_at_ms = coalesce(?2, due_at_ms),
  code = ?3,
  crashes = crashes + ?4,
  unstarted = CASE WHEN state = 'running' THEN 0 ELSE unstarted END,
  expires_at_ms = CASE WHEN state = 'running' AND expires_at_ms IS NOT NULL THEN max(
    expires_at_ms,
    ?5 + (SELECT job.expires_at_ms - job.created_at_ms FROM runwick_job AS job WHERE job.position = hot.job)
  ) ELSE expires_at_ms END,
  holds = 0,
  claim = NULL,
  begun_at_ms = NULL,
  lease_until_ms = NULL
WHERE job = ?1;
