-- A worker says good-bye, and is seen for the last time; the first time counts.
-- takes: id, application (its name), departed_at_ms
UPDATE runwick_worker SET seen_at_ms = ?3, departed_at_ms = ?3
WHERE id = ?1 AND departed_at_ms IS NULL
  AND application = (SELECT id FROM runwick_application WHERE name = ?2);
