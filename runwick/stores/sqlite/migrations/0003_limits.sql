-- Who may run next: uniqueness keys, pauses, scopes and rate windows.
--
--   pause ◀── queue        scope ◀──n:1── hold ──n:1──▶ hot          rate_window ──1:n──▶ rate_grant
--                            ▲                           │ line, called      ▲
--                            └───────────────────────────┴───────────────────┘
--
-- A job that meets a full scope or window leaves its lane and stands in that limit's line until it is called. Ids of
-- scopes, windows and keys are the first 16 bytes of a SHA-256 of what they are, the same in every store.

-- What a job asks for besides being run; plain jobs have no row. It is no part of runwick_job, where it would stand behind
-- the payload and be found by walking its pages.
CREATE TABLE runwick_need (
  job        INTEGER PRIMARY KEY REFERENCES runwick_job (position),
  active     BLOB,                             -- the id of its active key
  active_key TEXT,
  window_key TEXT,
  scopes     BLOB,                             -- ids of its resources, 16 bytes each, in the order declared
  rates      BLOB                              -- ids of its windows, alike
) STRICT;

-- `active` stands as long as the row does: a key is held exactly as long as its job is live. No claim, renewal or
-- settlement changes it.
ALTER TABLE runwick_hot ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;   -- 1: it has resources; 2: it has rate windows
ALTER TABLE runwick_hot ADD COLUMN holds INTEGER NOT NULL DEFAULT 0;     -- scopes that the attempt under way holds
ALTER TABLE runwick_hot ADD COLUMN rank INTEGER;       -- in its line: 0 high, 1 medium, 2 low
ALTER TABLE runwick_hot ADD COLUMN line BLOB;          -- the limit in whose line it stands; NULL: it stands in its lane
ALTER TABLE runwick_hot ADD COLUMN called BLOB;        -- the limit that it was last called in for, or promised a place of
ALTER TABLE runwick_hot ADD COLUMN active BLOB;        -- the id of its active key

DROP INDEX runwick_hot_ready;

-- As before, but for those in a line: they never stand in front of others. Whether a job has limits is told here too, so
-- that a claim of plain jobs goes its narrow way.
CREATE INDEX runwick_hot_ready ON runwick_hot (
  lane, kind, due_at_ms, job_id, ahead, payload_bytes, expires_at_ms, limited, lease_until_ms, line
) WHERE lease_until_ms IS NULL AND line IS NULL;

-- The lines: each rank of one is read from its head, and what is called leaves the index. The rest is what is counted by.
CREATE INDEX runwick_hot_line ON runwick_hot (line, rank, job_id, lane, kind, due_at_ms) WHERE line IS NOT NULL;
CREATE INDEX runwick_hot_called ON runwick_hot (application, due_at_ms) WHERE called IS NOT NULL;
CREATE UNIQUE INDEX runwick_hot_active ON runwick_hot (active) WHERE active IS NOT NULL;

-- Window keys, each with the first request that came with it. They outlive their job.

CREATE TABLE runwick_uniqueness (
  id          BLOB    PRIMARY KEY,
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  job         BLOB    NOT NULL,                -- its id
  until_ms    INTEGER NOT NULL,
  fingerprint BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runwick_uniqueness_until ON runwick_uniqueness (until_ms);

-- Dispatches that found an existing job: their receipts. One that created its job has the job's row.

CREATE TABLE runwick_reused (
  operation   BLOB    PRIMARY KEY,
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  job         BLOB    NOT NULL,                -- its id
  deadline_ms INTEGER NOT NULL,
  drift       INTEGER NOT NULL,
  match       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runwick_reused_deadline ON runwick_reused (deadline_ms);

-- How many may run at once. A scope is never deleted: its fence must not begin anew. `in_use` changes only together with
-- rows of runwick_hold.

CREATE TABLE runwick_scope (
  id            BLOB    PRIMARY KEY,
  application   INTEGER NOT NULL REFERENCES runwick_application (id),
  kind          TEXT    NOT NULL CHECK (kind IN ('queue', 'job-type', 'resource')),
  key           TEXT    NOT NULL,
  capacity      INTEGER NOT NULL,
  in_use        INTEGER NOT NULL DEFAULT 0,
  fence         INTEGER NOT NULL DEFAULT 0,    -- the last token given
  calls         INTEGER NOT NULL DEFAULT 0,    -- jobs called out of its line so far: whose turn it is among the ranks
  has_line      INTEGER NOT NULL DEFAULT 0,
  revision      INTEGER NOT NULL DEFAULT 1,
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runwick_scope_kind ON runwick_scope (application, kind, id);
CREATE INDEX runwick_scope_line ON runwick_scope (application, id) WHERE has_line;

CREATE TABLE runwick_hold (
  job   INTEGER NOT NULL,
  scope BLOB    NOT NULL,
  claim INTEGER NOT NULL,
  fence INTEGER,                               -- where the scope gives tokens
  PRIMARY KEY (job, scope)
) STRICT, WITHOUT ROWID;

CREATE INDEX runwick_hold_scope ON runwick_hold (scope);

-- How many may begin within a window. Its grants are a ring of `most` slots: number n lies in slot n mod most, and there
-- is room for number n when what lies there is older than the window. `promised` counts the grants whose leaving has
-- been promised to a job that waits. Its time never goes back: `shift_ms` is added to the store's where that did.

CREATE TABLE runwick_rate_window (
  id            BLOB    PRIMARY KEY,
  application   INTEGER NOT NULL REFERENCES runwick_application (id),
  kind          TEXT    NOT NULL CHECK (kind IN ('job-type', 'resource')),
  key           TEXT    NOT NULL,
  most          INTEGER NOT NULL,
  window_ms     INTEGER NOT NULL,
  granted       INTEGER NOT NULL DEFAULT 0,
  promised      INTEGER NOT NULL DEFAULT 0,
  shift_ms      INTEGER NOT NULL DEFAULT 0,
  last_ms       INTEGER NOT NULL DEFAULT 0,
  calls         INTEGER NOT NULL DEFAULT 0,
  has_line      INTEGER NOT NULL DEFAULT 0,
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runwick_rate_window_kind ON runwick_rate_window (application, kind, id);
CREATE INDEX runwick_rate_window_line ON runwick_rate_window (application, id) WHERE has_line;

CREATE TABLE runwick_rate_grant (
  rate_window BLOB    NOT NULL,
  slot        INTEGER NOT NULL,
  at_ms       INTEGER NOT NULL,                -- by the window's own time
  PRIMARY KEY (rate_window, slot)
) STRICT, WITHOUT ROWID;

-- Queues that were ever paused.

CREATE TABLE runwick_pause (
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  queue       TEXT    NOT NULL,
  revision    INTEGER NOT NULL,
  since_ms    INTEGER,                         -- NULL: it is open again
  PRIMARY KEY (application, queue)
) STRICT, WITHOUT ROWID;

-- Raised by every pause and resume, and when a scope of a queue or of a job type comes to be: who claims keeps what it
-- knows of these as long as the number stays.

CREATE TABLE runwick_intake (
  application INTEGER PRIMARY KEY REFERENCES runwick_application (id),
  revision    INTEGER NOT NULL
) STRICT;

ALTER TABLE runwick_worker ADD COLUMN kinds TEXT;      -- a JSON array of [name, version]; NULL: it did not tell

ALTER TABLE runwick_audit ADD COLUMN target TEXT;      -- what else than a job it was about
