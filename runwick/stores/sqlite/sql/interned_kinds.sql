-- Kinds that were added after id ?1.
-- returns: id, application, name, version
SELECT id, application, name, version FROM runwick_kind WHERE id > ?1 ORDER BY id;
