-- How many jobs a worker has put off: between two executions, or until there is room in a window.
-- takes: application, now_ms
-- returns: lane, kind, count
SELECT lane, kind, count(*) FROM runwick_hot WHERE application = ?1 AND state = 'retrying' AND due_at_ms > ?2
GROUP BY lane, kind
UNION ALL
SELECT lane, kind, count(*) FROM runwick_hot
WHERE application = ?1 AND called IS NOT NULL AND due_at_ms > ?2 AND state <> 'retrying'
GROUP BY lane, kind;
