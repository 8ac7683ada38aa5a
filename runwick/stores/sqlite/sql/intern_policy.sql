-- Give a policy its number.
-- takes: json
-- returns: id
INSERT INTO runwick_policy (json) VALUES (?1) RETURNING id;
