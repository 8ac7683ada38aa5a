-- What claims of all applications must know: queues that are paused, and the scopes of queues and of job types.
-- takes: nothing
-- returns: application, 'paused' or the scope's kind, the queue or the scope's key, the scope's id
SELECT application, 'paused', queue, NULL FROM runwick_pause WHERE since_ms IS NOT NULL
UNION ALL
SELECT scope.application, scope.kind, scope.key, scope.id
FROM runwick_application AS application
CROSS JOIN runwick_scope AS scope ON scope.application = application.id AND scope.kind IN ('queue', 'job-type');
