-- Give a name its number.
-- takes: name
-- returns: id
INSERT INTO runwick_application (name) VALUES (?1) RETURNING id;
