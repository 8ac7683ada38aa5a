-- The attempts that cost most CPU time. It reads every attempt that is kept, once.
-- takes: the gate's $1 to $3; name of the application, how many
-- returns: job, name, version, number, outcome, usage
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, NULL, 'costliest', $3, NULL) AS open
)
SELECT ranked.job, kind.name, kind.version, ranked.number, ranked.outcome, ranked.usage
FROM gate
CROSS JOIN LATERAL (
  SELECT attempt.job, attempt.kind, attempt.number, attempt.outcome, attempt.usage, attempt.cpu_us,
    attempt.position
  FROM runwick.attempt AS attempt
  WHERE gate.open AND attempt.cpu_us IS NOT NULL AND attempt.kind = ANY (ARRAY(
    SELECT kind.id
    FROM runwick.application AS application JOIN runwick.kind AS kind ON kind.application = application.id
    WHERE application.name = $4
  ))
  ORDER BY attempt.cpu_us DESC, attempt.position
  LIMIT $5
) AS ranked
JOIN runwick.kind AS kind ON kind.id = ranked.kind
ORDER BY ranked.cpu_us DESC, ranked.position;
