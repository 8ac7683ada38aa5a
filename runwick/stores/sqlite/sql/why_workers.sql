-- What the living workers of an application serve.
-- takes: application, the time after which a worker must have been seen to count as alive
-- returns: queues (a JSON array), kinds (a JSON array of [name, version], or NULL)
SELECT queues, kinds
FROM runwick_worker
WHERE application = ?1 AND departed_at_ms IS NULL AND seen_at_ms > ?2;
