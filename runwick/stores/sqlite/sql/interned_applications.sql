-- Applications that were added after id ?1.
-- returns: id, name
SELECT id, name FROM runwick_application WHERE id > ?1 ORDER BY id;
