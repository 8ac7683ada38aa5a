-- What a worker's executors do now.
-- takes: worker, told_at_ms, executors (JSON)
INSERT INTO runwick_activity (worker, told_at_ms, executors) VALUES (?1, ?2, ?3)
ON CONFLICT (worker) DO UPDATE SET told_at_ms = ?2, executors = ?3;
