-- Which operation of an application created a job.
-- takes: the gate's $1 to $3; name of the application, job
-- returns: operation; no row when there is no such job
SELECT job.operation_id
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'resolve', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4
JOIN runwick.job AS job ON job.id = $5 AND job.application = application.id;
