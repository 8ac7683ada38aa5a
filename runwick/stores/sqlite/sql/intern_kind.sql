-- Give a kind its number.
-- takes: application, name, version
-- returns: id
INSERT INTO kind (application, name, version) VALUES (?1, ?2, ?3) RETURNING id;
