-- What an operator did, in the transaction that does it.
-- takes: application, actor, action, before, after
INSERT INTO runwick.audit (at_ms, application, actor, action, before, after)
VALUES (runwick.now_ms(), $1::integer, $2, $3, $4, $5);
