-- Policies that were added after id ?1.
-- returns: id, json
SELECT id, json FROM runwick_policy WHERE id > ?1 ORDER BY id;
