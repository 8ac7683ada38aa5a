-- Free rows as if they had not been claimed: the due time and all that counts failures stay.
-- takes: jobs (a JSON array)
UPDATE runwick_hot SET
  state = CASE WHEN executions > (state = 'running') THEN 'retrying' ELSE 'pending' END,
  revision = revision + 1,
  attempts = attempts - 1,
  executions = executions - (state = 'running'),
  ahead = max_executions - executions + (state = 'running') >= 2 AND NOT limited,
  holds = 0,
  claim = NULL,
  begun_at_ms = NULL,
  lease_until_ms = NULL
WHERE job IN (SELECT value FROM json_each(?1));
