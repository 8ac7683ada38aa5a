-- What operators did behind a position, in commit order, whatever the application.
-- takes: position, how many
-- returns: position, application, at_ms, actor, actor_display, actor_scheme, action, job id, generation, before, after,
--          reason, command_id, target
SELECT audit.position, audit.application, audit.at_ms, audit.actor, audit.actor_display, audit.actor_scheme,
  audit.action, job.id, audit.generation, audit.before, audit.after, audit.reason, audit.command_id, audit.target
FROM runwick_audit AS audit
LEFT JOIN runwick_job AS job ON job.position = audit.job
WHERE audit.position > ?1
ORDER BY audit.position
LIMIT ?2;
