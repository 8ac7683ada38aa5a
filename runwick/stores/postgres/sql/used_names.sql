-- The names of all job types of an application that ever had a job.
-- takes: the gate's $1 to $3; name of the application
-- returns: name; in order
SELECT DISTINCT kind.name COLLATE "C" AS name
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'names', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4
JOIN runwick.kind AS kind ON kind.application = application.id
WHERE EXISTS (SELECT FROM runwick.job AS job WHERE job.kind = kind.id LIMIT 1)
ORDER BY name;
