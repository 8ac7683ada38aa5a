-- Write down what an operator did.
-- takes: position, application, actor, action, before, after, at_ms, actor_display, actor_scheme, reason, command_id,
--        job, generation, target
INSERT INTO runwick_audit (
  position, application, actor, action, before, after, at_ms, actor_display, actor_scheme, reason, command_id, job,
  generation, target
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14);
