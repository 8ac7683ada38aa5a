-- What keeps an application's jobs from being claimed the narrow way, all of one moment.
-- takes: the gate's $1 to $3; application
-- returns: 'revision', NULL, NULL, the number that every change of the following raises; then 'paused' and the queue;
--          'queue' or 'job-type', its name, its scope
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, NULL, 'intake', $3, NULL) AS open
)
SELECT 'revision', NULL::text, NULL::uuid, intake.revision
FROM gate JOIN runwick.intake AS intake ON gate.open AND intake.application = $4
UNION ALL
SELECT 'paused', pause.queue, NULL, NULL
FROM gate JOIN runwick.pause AS pause ON gate.open AND pause.application = $4 AND pause.since_ms IS NOT NULL
UNION ALL
SELECT scope.kind, scope.key, scope.id, NULL
FROM gate
JOIN runwick.scope AS scope ON gate.open AND scope.application = $4 AND scope.kind IN ('queue', 'job-type');
