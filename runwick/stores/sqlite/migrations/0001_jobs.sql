-- Jobs from receipt to closing.
--
--   job ──1:1──▶ hot ─────n:1──▶ claim     while a job is live: the one narrow row that claims, renewals and
--    │                            ▲          settlements change, and the claim call that holds it
--    ├─────1:n──▶ attempt ──n:1───┘          append-only: how each attempt ended
--    │               └──────1:0..1──▶ detail what is heavy or private about it
--    └─────1:n──▶ closing                    append-only: how each generation ended
--
-- A job's state, generation and revision are those of its hot row while it is live, otherwise of its last closing.
-- Positions number the rows of job, attempt and closing together, in commit order, so that these rows are the events.
-- Every name begins with runwick_, for the file may hold an application's own tables too; where the acts name a table
-- often they drop it. Ids and tokens are 16 raw bytes, times are milliseconds since 1970-01-01 UTC.

CREATE TABLE runwick_store (
  one            INTEGER PRIMARY KEY CHECK (one = 1),
  store_id       BLOB    NOT NULL,
  created_at_ms  INTEGER NOT NULL,
  position_floor INTEGER NOT NULL DEFAULT 0   -- raised by whatever deletes the last rows, so that no position returns
) STRICT;

-- Names that millions of rows share, as small numbers. Rows are only ever added.

CREATE TABLE runwick_application (
  id   INTEGER PRIMARY KEY,
  name TEXT    NOT NULL UNIQUE
) STRICT;

CREATE TABLE runwick_lane (
  id          INTEGER PRIMARY KEY,
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  queue       TEXT    NOT NULL,
  priority    TEXT    NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
  UNIQUE (application, queue, priority)
) STRICT;

CREATE TABLE runwick_kind (
  id          INTEGER PRIMARY KEY,
  application INTEGER NOT NULL REFERENCES runwick_application (id),
  name        TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  UNIQUE (application, name, version)
) STRICT;

CREATE TABLE runwick_policy (
  id   INTEGER PRIMARY KEY,
  json TEXT    NOT NULL UNIQUE
) STRICT;

-- What was asked for. Never changed. The payload stands last, so that reading the rest never walks its pages.

CREATE TABLE runwick_job (
  position      INTEGER PRIMARY KEY,
  id            BLOB    NOT NULL UNIQUE,
  application   INTEGER NOT NULL REFERENCES runwick_application (id),
  lane          INTEGER NOT NULL REFERENCES runwick_lane (id),
  kind          INTEGER NOT NULL REFERENCES runwick_kind (id),
  policy        INTEGER NOT NULL REFERENCES runwick_policy (id),
  operation_id  BLOB    NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  tenant        TEXT,
  traceparent   TEXT,
  tracestate    TEXT,
  metadata      BLOB,                          -- JSON, byte for byte as it came
  payload_bytes INTEGER NOT NULL,
  payload       BLOB    NOT NULL               -- JSON, byte for byte as it came
) STRICT;

-- Claim calls that took something. What all of its attempts share stands here once.

CREATE TABLE runwick_claim (
  id               INTEGER PRIMARY KEY,
  token            BLOB    NOT NULL UNIQUE,    -- chosen by the worker: every later write of an attempt must show it
  first_attempt_id BLOB    NOT NULL,           -- the ids of its attempts are counted from it
  worker           BLOB    NOT NULL,
  claimed_at_ms    INTEGER NOT NULL
) STRICT;

-- A live job. It leaves when its generation ends.

CREATE TABLE runwick_hot (
  job                    INTEGER PRIMARY KEY REFERENCES runwick_job (position),
  application            INTEGER NOT NULL,
  lane                   INTEGER NOT NULL,
  kind                   INTEGER NOT NULL,
  state                  TEXT    NOT NULL,
  generation             INTEGER NOT NULL DEFAULT 1,
  revision               INTEGER NOT NULL DEFAULT 1,
  due_at_ms              INTEGER NOT NULL,
  job_id                 BLOB    NOT NULL,
  payload_bytes          INTEGER NOT NULL,
  expires_at_ms          INTEGER,              -- every planned retry moves it on (the job keeps what was asked for)
  attempts               INTEGER NOT NULL DEFAULT 0,   -- the number of the generation's last attempt
  executions             INTEGER NOT NULL DEFAULT 0,   -- charged in this generation
  max_executions         INTEGER NOT NULL,
  ahead                  INTEGER NOT NULL,     -- 1 while it may be handed to a busy executor: two executions are left
  unstarted              INTEGER NOT NULL DEFAULT 0,   -- claims in a row that were abandoned before they began
  crashes                INTEGER NOT NULL DEFAULT 0,   -- attempts of this generation that killed their executor
  code                   TEXT,                 -- why a job that was tried before waits
  cancel_requested_at_ms INTEGER,
  lease_until_ms         INTEGER,
  claim                  INTEGER,              -- who holds it, while it is leased
  begun_at_ms            INTEGER,              -- the executor's mark of the attempt under way, once the worker told it
  -- OR and not IN: SQLite would build a table of the list for every write.
  CHECK (state = 'pending' OR state = 'reserved' OR state = 'running' OR state = 'retrying'),
  CHECK ((lease_until_ms IS NULL) = (claim IS NULL)),
  CHECK ((lease_until_ms IS NOT NULL) = (state = 'reserved' OR state = 'running'))
) STRICT;

-- Waiting jobs in claim order, one run per lane and kind: a kind that a worker cannot decode is stepped over whole,
-- however many of its jobs stand in front. What a claim decides by stands in the index too, the empty lease as well:
-- without it SQLite would look into the table for each entry.
CREATE INDEX runwick_hot_ready ON runwick_hot (
  lane, kind, due_at_ms, job_id, ahead, payload_bytes, expires_at_ms, lease_until_ms
) WHERE lease_until_ms IS NULL;
CREATE INDEX runwick_hot_lease ON runwick_hot (application, lease_until_ms) WHERE lease_until_ms IS NOT NULL;
CREATE INDEX runwick_hot_retrying ON runwick_hot (application, due_at_ms) WHERE state = 'retrying';
CREATE INDEX runwick_hot_expiry ON runwick_hot (application, expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX runwick_hot_cancel ON runwick_hot (application) WHERE cancel_requested_at_ms IS NOT NULL;

-- How attempts ended. Only ever appended to.

CREATE TABLE runwick_attempt (
  position       INTEGER PRIMARY KEY,
  job            INTEGER NOT NULL REFERENCES runwick_job (position),
  kind           INTEGER NOT NULL,
  attempt_id     BLOB    NOT NULL,
  claim          INTEGER NOT NULL,
  generation     INTEGER NOT NULL,
  number         INTEGER NOT NULL,
  outcome        TEXT    NOT NULL,
  code           TEXT,
  begun_at_ms    INTEGER,                      -- the executor's mark (NULL when it left none)
  ended_at_ms    INTEGER NOT NULL,
  wall_us        INTEGER,
  cpu_us         INTEGER,
  rss_peak_bytes INTEGER,
  usage          TEXT,                         -- all that was measured: a JSON array in the order of Usage
  delay_ms       INTEGER,                      -- how long the job was made to wait after it, as it was drawn
  death          TEXT,                         -- how its executor died: a JSON array in the order of Death
  UNIQUE (job, generation, number)
) STRICT;

-- How generations ended. Only ever appended to.

CREATE TABLE runwick_closing (
  position               INTEGER PRIMARY KEY,
  job                    INTEGER NOT NULL REFERENCES runwick_job (position),
  application            INTEGER NOT NULL,
  generation             INTEGER NOT NULL,
  state                  TEXT    NOT NULL CHECK (state = 'succeeded' OR state = 'failed' OR state = 'cancelled'),
  code                   TEXT,
  revision               INTEGER NOT NULL,
  executions             INTEGER NOT NULL,
  ended_at_ms            INTEGER NOT NULL,
  cancel_requested_at_ms INTEGER,              -- when somebody cancelled it, whatever it ended in
  UNIQUE (job, generation)
) STRICT;

-- Most jobs succeed: a list of those reads the table from its end. A list of others repeats this condition.
CREATE INDEX runwick_closing_unsuccessful ON runwick_closing (application, state, position) WHERE state <> 'succeeded';

-- What an attempt left behind that is heavy or private. It may be deleted before its attempt.

CREATE TABLE runwick_detail (
  attempt     INTEGER PRIMARY KEY REFERENCES runwick_attempt (position),
  ended_at_ms INTEGER NOT NULL,                -- its own age
  error       TEXT,                            -- a JSON array in the order of ErrorDetail
  result      BLOB,                            -- JSON, byte for byte as it came
  black_box   TEXT                             -- a JSON array in the order of BlackBox
) STRICT;

-- Who works here, as the workers last said themselves.

CREATE TABLE runwick_worker (
  id             BLOB    PRIMARY KEY,
  application    INTEGER NOT NULL REFERENCES runwick_application (id),
  host           TEXT    NOT NULL,
  process        INTEGER NOT NULL,
  queues         TEXT    NOT NULL,             -- a JSON array of names
  executors      INTEGER NOT NULL,
  seen_at_ms     INTEGER NOT NULL,
  departed_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- What a worker's executors do, as it told last. Apart from the worker, whose row every heartbeat writes.

CREATE TABLE runwick_activity (
  worker     BLOB    PRIMARY KEY REFERENCES runwick_worker (id) ON DELETE CASCADE,
  told_at_ms INTEGER NOT NULL,
  executors  TEXT    NOT NULL                  -- a JSON array of ExecutorActivity
) STRICT, WITHOUT ROWID;

-- Stacks of running attempts that somebody wants to see, and the answers of their workers.

CREATE TABLE runwick_look (
  attempt_id     BLOB    PRIMARY KEY,
  job            INTEGER NOT NULL REFERENCES runwick_job (position),
  application    INTEGER NOT NULL,
  worker         BLOB    NOT NULL,
  claim_token    BLOB    NOT NULL,
  asked_at_ms    INTEGER NOT NULL,
  answered_at_ms INTEGER,
  text           TEXT,
  CHECK ((answered_at_ms IS NULL) = (text IS NULL))
) STRICT;

CREATE INDEX runwick_look_open ON runwick_look (worker) WHERE answered_at_ms IS NULL;

-- When the next recovery pass of an application is due. Whoever moves it on runs the pass.

CREATE TABLE runwick_recovery (
  application INTEGER PRIMARY KEY REFERENCES runwick_application (id),
  next_at_ms  INTEGER NOT NULL
) STRICT;
