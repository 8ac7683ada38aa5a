-- The queues of an application, by name.
-- takes: application (its name)
-- returns: queue, revision (NULL where it was never paused), since_ms
SELECT DISTINCT lane.queue, pause.revision, pause.since_ms
FROM runwick_application AS application
CROSS JOIN runwick_lane AS lane ON lane.application = application.id
LEFT JOIN runwick_pause AS pause ON pause.application = lane.application AND pause.queue = lane.queue
WHERE application.name = ?1
ORDER BY lane.queue;
