-- Give a policy its number.
-- takes: json
-- returns: id
INSERT INTO policy (json) VALUES (?1) RETURNING id;
