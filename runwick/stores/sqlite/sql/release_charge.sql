-- Take back the charge of attempts that never reached their handler, before their jobs end.
-- takes: jobs (a JSON array)
UPDATE runwick_hot SET executions = executions - (state = 'running') WHERE job IN (SELECT value FROM json_each(?1));
