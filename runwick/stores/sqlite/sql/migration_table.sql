-- Which migrations a file has. A file with this table is a Runwick store.
CREATE TABLE runwick_migration (
  number        INTEGER PRIMARY KEY,
  name          TEXT    NOT NULL,
  checksum      TEXT    NOT NULL,              -- SHA-256 of the migration's file
  applied_at_ms INTEGER NOT NULL
) STRICT;
