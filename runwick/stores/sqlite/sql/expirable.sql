-- Waiting jobs of an application that had not begun by their expiry, the longest expired first. Leased ones are stepped
-- over.
-- takes: application, now_ms, how many
-- returns: job, called, due_at_ms, job_id
SELECT job, called, due_at_ms, job_id
FROM runwick_hot
WHERE application = ?1 AND expires_at_ms IS NOT NULL AND expires_at_ms <= ?2 AND claim IS NULL
ORDER BY expires_at_ms, job
LIMIT ?3;
