-- A job that was taken holds so many scopes, and has come in for what it was called in for.
-- takes: job, holds
UPDATE runwick_hot SET holds = ?2, called = NULL WHERE job = ?1;
