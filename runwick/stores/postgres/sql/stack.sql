-- The stack of an attempt that was asked for, once it is there.
-- takes: the gate's $1 to $3; name of the application, attempt id
-- returns: text; no row before
SELECT look.text
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'stack', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4
JOIN runwick.look AS look ON look.attempt_id = $5 AND look.application = application.id
WHERE look.answered_at_ms IS NOT NULL;
