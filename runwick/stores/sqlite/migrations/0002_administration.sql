-- What an operator decides about a store: how each application is admitted, what it is capable of, and who did that.
--
-- A new application is as capable as its store says. A store that this revision creates says: of everything; one that
-- was there before says: of nothing, since it may be served by processes that know of no capability.

ALTER TABLE runwick_store ADD COLUMN capabilities TEXT NOT NULL DEFAULT '["rate_admission","scheduler"]';

UPDATE runwick_store SET capabilities = '[]';

ALTER TABLE runwick_application ADD COLUMN admission TEXT NOT NULL DEFAULT 'open'
  CHECK (admission = 'open' OR admission = 'drain' OR admission = 'maintenance');

ALTER TABLE runwick_application ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';   -- a JSON array, sorted

-- What operators did. Only ever appended to; its positions are of the one sequence. A job that was acted upon and its
-- generation, which for a retry or rerun is the one that was opened, stand in it too.

CREATE TABLE runwick_audit (
  position      INTEGER PRIMARY KEY,
  application   INTEGER NOT NULL REFERENCES runwick_application (id),
  actor         TEXT    NOT NULL,
  action        TEXT    NOT NULL,
  before        TEXT,
  after         TEXT,
  at_ms         INTEGER NOT NULL,
  actor_display TEXT,
  actor_scheme  TEXT,
  reason        TEXT,
  command_id    BLOB,
  job           INTEGER REFERENCES runwick_job (position),
  generation    INTEGER
) STRICT;

-- A generation is opened once.
CREATE UNIQUE INDEX runwick_audit_opened ON runwick_audit (job, generation) WHERE action = 'retry' OR action = 'rerun';

-- Commands of operators that changed something, so that one that is sent again gets its first answer.

CREATE TABLE runwick_command (
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  id          BLOB    NOT NULL,
  fingerprint BLOB    NOT NULL,                -- of what was asked for
  reply       BLOB    NOT NULL,                -- the answers as JSON
  at_ms       INTEGER NOT NULL,
  PRIMARY KEY (application, id)
) STRICT, WITHOUT ROWID;

-- The latest time that any worker has seen: no process's clock may stand before it.
CREATE INDEX runwick_worker_seen ON runwick_worker (seen_at_ms);
