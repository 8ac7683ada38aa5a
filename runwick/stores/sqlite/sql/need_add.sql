-- What a new job asks for besides being run.
-- takes: job, active, active_key, window_key, scopes, rates
INSERT INTO runwick_need (job, active, active_key, window_key, scopes, rates) VALUES (?1, ?2, ?3, ?4, ?5, ?6);
