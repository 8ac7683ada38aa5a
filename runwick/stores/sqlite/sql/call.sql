-- A job stands in its lane, called in for or promised a place of a limit. Not a change of the job: the revision stays.
-- takes: job, called, due_at_ms (NULL keeps it)
UPDATE runwick_hot SET line = NULL, rank = NULL, called = ?2, due_at_ms = coalesce(?3, due_at_ms) WHERE job = ?1;
