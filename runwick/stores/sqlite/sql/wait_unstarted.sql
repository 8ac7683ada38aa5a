-- Free a row whose attempt was abandoned before it began: its number is taken back, the guard counts it.
-- takes: job, due_at_ms (NULL keeps it), code
UPDATE runwick_hot SET
  state = CASE WHEN executions > 0 THEN 'retrying' ELSE 'pending' END,
  revision = revision + 1,
  due_at_ms = coalesce(?2, due_at_ms),
  code = ?3,
  attempts = attempts - 1,
  unstarted = unstarted + 1,
  claim = NULL,
  lease_until_ms = NULL
WHERE job = ?1;
