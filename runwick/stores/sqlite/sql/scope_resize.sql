-- Give a scope another capacity.
-- takes: id, capacity, revision
UPDATE runwick_scope SET capacity = ?2, revision = ?3 WHERE id = ?1;
