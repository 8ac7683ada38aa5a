-- The jobs of one tenant in front of a position, the latest first.
-- takes: application, tenant, position, how many
-- returns: job
SELECT position FROM runwick_job
WHERE application = ?1 AND tenant = ?2 AND position < ?3
ORDER BY position DESC
LIMIT ?4;
