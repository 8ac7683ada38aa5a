-- What an operator decides about a store: how each application is admitted, what it is capable of, and who did that.
--
-- A new application is as capable as its store says. A store that this revision creates says: of everything; one that
-- was there before says: of nothing, since it may be served by processes that know of no capability.

ALTER TABLE runwick_store ADD COLUMN capabilities TEXT NOT NULL DEFAULT '["rate_admission","scheduler"]';

UPDATE runwick_store SET capabilities = '[]';

ALTER TABLE runwick_application ADD COLUMN admission TEXT NOT NULL DEFAULT 'open'
  CHECK (admission = 'open' OR admission = 'drain' OR admission = 'maintenance');

ALTER TABLE runwick_application ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';   -- a JSON array, sorted

-- What operators did that cannot be undone. Only ever appended to; its positions are of the one sequence.

CREATE TABLE runwick_audit (
  position    INTEGER PRIMARY KEY,
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  actor       TEXT    NOT NULL,
  action      TEXT    NOT NULL,
  before      TEXT    NOT NULL,
  after       TEXT    NOT NULL,
  at_ms       INTEGER NOT NULL
) STRICT;

-- The latest time that any worker has seen: no process's clock may stand before it.
CREATE INDEX runwick_worker_seen ON runwick_worker (seen_at_ms);
