-- Give an application its number, if it has none. It is open, and as capable as its store says.
-- takes: the gate's $1 to $4; act, name
WITH added AS (
  INSERT INTO runwick.application (name, capabilities)
  SELECT $6, store.capabilities_from_start
  FROM runwick.store AS store
  WHERE runwick.gate($1, $2::integer, NULL, $5, $3, $4)
  ON CONFLICT (name) DO NOTHING
  RETURNING id
), counted AS (
  INSERT INTO runwick.intake (application) SELECT id FROM added
)
INSERT INTO runwick.recovery (application, next_at_ms) SELECT id, 0 FROM added;
