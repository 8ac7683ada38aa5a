-- How the store takes work of an application.
-- takes: the gate's $1 to $3; name of the application
-- returns: admission, capabilities; no row of an application that has not used the store yet
SELECT application.admission, application.capabilities
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'standing', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4;
