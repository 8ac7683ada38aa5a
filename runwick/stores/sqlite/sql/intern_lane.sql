-- Give a lane its number.
-- takes: application, queue, priority
-- returns: id
INSERT INTO runwick_lane (application, queue, priority) VALUES (?1, ?2, ?3) RETURNING id;
