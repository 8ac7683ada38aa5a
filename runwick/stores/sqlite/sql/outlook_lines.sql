-- The jobs of these lanes that stand in lines.
-- takes: lanes (a JSON array), now_ms
-- returns: lane, kind, due now, due later, when the first is due
SELECT lane, kind, sum(due_at_ms <= ?2), sum(due_at_ms > ?2), min(due_at_ms)
FROM runwick_hot
WHERE line IS NOT NULL AND lane IN (SELECT value FROM json_each(?1))
GROUP BY lane, kind;
