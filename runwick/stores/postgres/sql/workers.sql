-- The workers of an application that were seen lately, the latest start first, as their ids tell.
-- takes: the gate's $1 to $3; name of the application, how many milliseconds ago they were seen at most
-- returns: id, host, process, queues (JSON), executors, seen_at_ms, departed_at_ms, told_at_ms, what each executor does
--          (JSON), which kinds it decodes (JSON; NULL: it did not tell)
SELECT
  worker.id, worker.host, worker.process, worker.queues, worker.executors, worker.seen_at_ms, worker.departed_at_ms,
  activity.told_at_ms, activity.executors, worker.kinds
FROM (
  SELECT runwick.now_ms() AS now_ms WHERE runwick.gate($1, $2::integer, NULL, 'workers', $3, NULL)
) AS gate
JOIN runwick.application AS application ON application.name = $4
JOIN runwick.worker AS worker ON worker.application = application.id AND worker.seen_at_ms >= gate.now_ms - $5
LEFT JOIN runwick.activity AS activity ON activity.worker = worker.id
ORDER BY worker.id DESC;
