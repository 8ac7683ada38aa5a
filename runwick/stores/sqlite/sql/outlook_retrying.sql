-- How many jobs wait for a due time between two executions.
-- takes: application, now_ms
-- returns: lane, kind, count
SELECT lane, kind, count(*) FROM runwick_hot WHERE application = ?1 AND state = 'retrying' AND due_at_ms > ?2
GROUP BY lane, kind;
