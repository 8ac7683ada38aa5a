-- Lease the chosen jobs, and charge them when the claim begins them.
-- takes: jobs (a JSON array), state, charged (0 or 1), claim, lease_until_ms
UPDATE runwick_hot SET
  state = ?2,
  revision = revision + 1,
  attempts = attempts + 1,
  executions = executions + ?3,
  ahead = max_executions - executions - ?3 >= 2 AND NOT limited,
  claim = ?4,
  lease_until_ms = ?5
WHERE job IN (SELECT value FROM json_each(?1));
