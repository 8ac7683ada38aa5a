-- The stack of an attempt that was asked for, once it is there.
-- takes: application (its name), attempt_id
-- returns: text, or no row
SELECT look.text
FROM runwick_look AS look
CROSS JOIN runwick_application AS application ON application.id = look.application
WHERE look.attempt_id = ?2 AND application.name = ?1 AND look.answered_at_ms IS NOT NULL;
