-- Another identity.
-- takes: id
UPDATE runwick.store SET id = $1::uuid;
