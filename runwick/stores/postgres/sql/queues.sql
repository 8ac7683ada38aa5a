-- The queues of an application, by name.
-- takes: the gate's $1 to $3; name of the application
-- returns: name, revision, since when it is paused (NULL: it is open)
SELECT own.queue, coalesce(pause.revision, 0), pause.since_ms
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'queues', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4
CROSS JOIN LATERAL (
  SELECT DISTINCT lane.queue FROM runwick.lane AS lane WHERE lane.application = application.id
) AS own
LEFT JOIN runwick.pause AS pause ON pause.application = application.id AND pause.queue = own.queue
ORDER BY own.queue COLLATE "C";
