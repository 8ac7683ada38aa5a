-- A worker is known to be dead, whenever it was seen last.
-- takes: id, application, departed_at_ms
UPDATE runwick_worker SET departed_at_ms = ?3 WHERE id = ?1 AND application = ?2 AND departed_at_ms IS NULL;
