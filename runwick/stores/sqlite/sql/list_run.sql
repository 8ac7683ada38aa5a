-- The jobs of one lane and kind in front of a position, the latest first.
-- takes: lane, kind, position, how many
-- returns: job
SELECT position FROM runwick_job WHERE lane = ?1 AND kind = ?2 AND position < ?3 ORDER BY position DESC LIMIT ?4;
