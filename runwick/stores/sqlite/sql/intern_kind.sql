-- Give a kind its number.
-- takes: application, name, version
-- returns: id
INSERT INTO runwick_kind (application, name, version) VALUES (?1, ?2, ?3) RETURNING id;
