-- What of that its hot row tells: such a job never runs ahead.
-- takes: job, limited, active
UPDATE runwick_hot SET limited = ?2, active = ?3, ahead = ahead AND NOT ?2 WHERE job = ?1;
