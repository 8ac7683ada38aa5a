-- What became of one dispatch operation of an application: the job it created, or the existing one that it found.
-- takes: the gate's $1 to $3; name of the application, operation, the job that it would have created
-- returns: of a job that it found: that job, which key found it, whether policies differed; of one that it created: NULLs;
--          no row when it was not applied
WITH gate AS MATERIALIZED (
  SELECT application.id
  FROM runwick.application AS application
  WHERE runwick.gate($1, $2::integer, NULL, 'resolve', $3, NULL) AND application.name = $4
)
SELECT reused.job, reused.match, reused.drift
FROM gate JOIN runwick.reused AS reused ON reused.operation = $5 AND reused.application = gate.id
UNION ALL
SELECT NULL, NULL, NULL
FROM gate JOIN runwick.job AS job ON job.id = $6 AND job.operation_id = $5 AND job.application = gate.id;
