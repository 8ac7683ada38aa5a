-- The workers of an application that were seen since ?2, the latest start first, as their ids tell.
-- takes: application (its name), the time since which they were seen
-- returns: id, host, process, queues (JSON), executors, seen_at_ms, departed_at_ms, told_at_ms, what they do (JSON), kinds
--          (JSON)
SELECT worker.id, worker.host, worker.process, worker.queues, worker.executors, worker.seen_at_ms,
  worker.departed_at_ms, activity.told_at_ms, activity.executors, worker.kinds
FROM runwick_worker AS worker
CROSS JOIN runwick_application AS application ON application.id = worker.application
LEFT JOIN runwick_activity AS activity ON activity.worker = worker.id
WHERE application.name = ?1 AND worker.seen_at_ms >= ?2
ORDER BY worker.id DESC;
