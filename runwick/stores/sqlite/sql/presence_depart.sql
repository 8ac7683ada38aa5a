-- A worker says good-bye.
-- takes: id, departed_at_ms
UPDATE runwick_worker SET departed_at_ms = ?2 WHERE id = ?1;
