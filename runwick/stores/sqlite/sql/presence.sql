-- A worker says that it lives.
-- takes: id, application, host, process, queues (JSON), executors, seen_at_ms, kinds (JSON; NULL leaves what was told)
INSERT INTO runwick_worker (id, application, host, process, queues, executors, seen_at_ms, kinds)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (id) DO UPDATE SET queues = ?5, executors = ?6, seen_at_ms = ?7, kinds = coalesce(?8, kinds);
