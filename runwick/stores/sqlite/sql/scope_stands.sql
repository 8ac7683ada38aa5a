-- How the scope ?1 stands.
-- returns: revision, capacity; no row when there is no such scope
SELECT revision, capacity FROM runwick_scope WHERE id = ?1;
