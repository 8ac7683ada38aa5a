-- Move a job from its lane into a line. Not a change of the job: the revision stays.
-- takes: job, line, rank
UPDATE runwick_hot SET line = ?2, rank = ?3, called = NULL WHERE job = ?1;
