-- Limits that have a line, scopes and windows among each other, by id.
-- takes: application, the id behind which to start, how many
-- returns: id, whether it is a scope
SELECT id, 1 FROM runwick_scope WHERE application = ?1 AND has_line AND id > ?2
UNION ALL
SELECT id, 0 FROM runwick_rate_window WHERE application = ?1 AND has_line AND id > ?2
ORDER BY 1
LIMIT ?3;
