-- Write down what an operator did.
-- takes: position, application, actor, action, before, after, at_ms
INSERT INTO runwick_audit (position, application, actor, action, before, after, at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
