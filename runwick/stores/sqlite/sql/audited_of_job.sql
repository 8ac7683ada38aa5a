-- What operators did to one job, the latest first.
-- takes: as audited, and the job's id
-- returns: as audit
SELECT audit.position, audit.application, audit.at_ms, audit.actor, audit.actor_display, audit.actor_scheme,
  audit.action, job.id, audit.generation, audit.before, audit.after, audit.reason, audit.command_id, audit.target
FROM runwick_job AS job
CROSS JOIN runwick_audit AS audit ON audit.job = job.position
WHERE job.id = ?10 AND audit.position > ?2 AND audit.position < ?3 AND audit.application = ?1
  AND (?4 IS NULL OR audit.action = ?4)
  AND (?5 IS NULL OR audit.actor = ?5)
  AND (?6 IS NULL OR audit.target = ?6 OR substr(audit.target, 1, instr(audit.target, ' ') - 1) = ?6)
  AND (?7 IS NULL OR audit.at_ms >= ?7)
  AND (?8 IS NULL OR audit.at_ms < ?8)
ORDER BY audit.position DESC
LIMIT ?9;
