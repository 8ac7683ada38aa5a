-- Lanes that were added after id ?1.
-- returns: id, application, queue, priority
SELECT id, application, queue, priority FROM runwick_lane WHERE id > ?1 ORDER BY id;
