-- How a queue stands.
-- takes: application, queue
-- returns: revision, since_ms; no row when there is no such queue
SELECT coalesce(pause.revision, 0), pause.since_ms
FROM runwick_lane AS lane
LEFT JOIN runwick_pause AS pause ON pause.application = lane.application AND pause.queue = lane.queue
WHERE lane.application = ?1 AND lane.queue = ?2
LIMIT 1;
