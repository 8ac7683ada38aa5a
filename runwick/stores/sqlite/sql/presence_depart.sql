-- A worker says good-bye.
-- takes: id, departed_at_ms
UPDATE runwick_worker SET seen_at_ms = ?2, departed_at_ms = ?2 WHERE id = ?1;
