-- Give a lane its number.
-- takes: application, queue, priority
-- returns: id
INSERT INTO lane (application, queue, priority) VALUES (?1, ?2, ?3) RETURNING id;
