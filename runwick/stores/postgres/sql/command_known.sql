-- What a command was and what was answered, if it was applied before: of a dispatch by hand, before anything else is read.
-- takes: the gate's $1 to $4; application; command id
-- returns: fingerprint, reply; or no row
SELECT command.fingerprint, command.reply
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'dispatch', $3, $4) AS open) AS gate
JOIN runwick.command AS command ON gate.open AND command.application = $5 AND command.id = $6;
