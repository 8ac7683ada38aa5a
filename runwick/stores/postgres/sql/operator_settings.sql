-- Settings of an operator's session, those that this version of the server has: nothing ends a long migration, and names
-- without a schema are ours, or the system's. What is created by such a name keeps that path; temporary tables stand
-- last in it, so that they cannot take the place of ours.
SELECT set_config(wanted.name, wanted.setting, false)
FROM (VALUES
  ('search_path', 'runwick, pg_temp'),
  ('statement_timeout', '0'),
  ('lock_timeout', '0'),
  ('transaction_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'),
  ('idle_session_timeout', '0'),
  ('default_transaction_isolation', 'read committed'),
  ('client_min_messages', 'warning')
) AS wanted (name, setting)
JOIN pg_settings USING (name);
