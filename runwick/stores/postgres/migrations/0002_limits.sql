-- Who may run next: uniqueness keys, pauses, scopes and rate windows.
--
--   pause ◀── queue        scope ◀──n:1── hold ──n:1──▶ hot          rate_window ──1:n──▶ rate_grant
--                            ▲                           │ line, called      ▲
--                            └───────────────────────────┴───────────────────┘
--
-- A job that meets a full scope or window leaves its lane and stands in that limit's line until it is called. Ids of
-- scopes, windows and keys are the first 16 bytes of a SHA-256 of what they are, the same in every store.

ALTER TABLE job
  ADD COLUMN active_key text,
  ADD COLUMN window_key text,
  ADD COLUMN scopes     uuid[],                -- its resources, in the order declared
  ADD COLUMN rates      uuid[];

-- `active` stands as long as the row does: a key is held exactly as long as its job is live. No claim, renewal or
-- settlement changes what an index holds but `line`.
ALTER TABLE hot
  ADD COLUMN limited boolean  NOT NULL DEFAULT false,   -- it has scopes or rates of its own
  ADD COLUMN holds   smallint NOT NULL DEFAULT 0,       -- scopes that the attempt under way holds
  ADD COLUMN rank    smallint,                          -- in its line: 0 high, 1 medium, 2 low
  ADD COLUMN line    uuid,                              -- the limit in whose line it stands; NULL: it stands in its lane
  ADD COLUMN called  uuid,                              -- the limit that it was last called in for, or promised a place of
  ADD COLUMN active  uuid;                              -- its active key

DROP INDEX hot_ready;

-- All live jobs of a lane in claim order, but for those in a line. Leased ones stand among them and are passed over at
-- their row; kinds that a worker cannot decode are passed over here.
CREATE INDEX hot_ready ON hot (lane, due_at_ms, job, kind) WHERE line IS NULL;
CREATE INDEX hot_line ON hot (line, rank, job) WHERE line IS NOT NULL;
CREATE UNIQUE INDEX hot_active ON hot (active) WHERE active IS NOT NULL;

-- When the next job of these lanes is due that nobody holds, of such kinds and later than now (or than has to be waited
-- for); NULL, if none will be. Behind a thousand of a lane of which none can be decoded it is time to look again. A function,
-- because a statement pays for its parts, used or not, and most claims find something.
CREATE FUNCTION next_due_ms(lanes bigint[], waited_ms bigint[], kinds bigint[], now_ms bigint) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT min(next.due_at_ms)
  FROM unnest(next_due_ms.lanes, next_due_ms.waited_ms) AS lane (id, waited_ms)
  CROSS JOIN LATERAL (
    SELECT later.due_at_ms
    FROM (
      SELECT ahead.*, row_number() OVER () AS number
      FROM (
        SELECT hot.due_at_ms, hot.kind, hot.claim
        FROM hot
        WHERE hot.lane = lane.id AND hot.due_at_ms > next_due_ms.now_ms - lane.waited_ms AND hot.line IS NULL
        ORDER BY hot.due_at_ms, hot.job
        LIMIT 1000
      ) AS ahead
    ) AS later
    WHERE later.kind = ANY (next_due_ms.kinds) AND later.claim IS NULL OR later.number = 1000
    LIMIT 1
  ) AS next;
END;

-- The id of an active key, as `runwick.policy.limit_ids` makes it.
CREATE FUNCTION active_id(application text, name text, key text) RETURNS uuid LANGUAGE sql STABLE
  AS $$
    SELECT encode(substring(sha256(
      convert_to('active', 'UTF8') || '\x00' || convert_to(active_id.application, 'UTF8') || '\x00'
      || convert_to(active_id.name, 'UTF8') || '\x00' || convert_to(active_id.key, 'UTF8')
    ) FOR 16), 'hex')::uuid
  $$;

-- Window keys, each with the first request that came with it. They outlive their job.

CREATE TABLE uniqueness (
  id          uuid    PRIMARY KEY,
  application integer NOT NULL,
  job         uuid    NOT NULL,
  until_ms    bigint  NOT NULL,
  fingerprint bytea   NOT NULL
);

CREATE INDEX uniqueness_until ON uniqueness (until_ms);

-- Dispatches that found an existing job: their receipts. One that created its job has the job's row.

CREATE TABLE reused (
  operation   uuid    PRIMARY KEY,
  application integer NOT NULL,
  job         uuid    NOT NULL,
  deadline_ms bigint  NOT NULL,
  drift       boolean NOT NULL,
  match       text    NOT NULL
);

CREATE INDEX reused_deadline ON reused (deadline_ms);

-- How many may run at once. A scope is never deleted: its fence must not begin anew. `in_use` changes only together with
-- rows of `hold`, under the lock of this row. Behind `heads` begins the line of each rank: what was called before is not
-- passed again, however long it stays in the index.

CREATE TABLE scope (
  id            uuid    PRIMARY KEY,
  created_at_ms bigint  NOT NULL,
  fence         bigint  NOT NULL DEFAULT 0,    -- the last token given
  calls         bigint  NOT NULL DEFAULT 0,    -- jobs called out of its line so far: whose turn it is among the ranks
  application   integer NOT NULL,
  capacity      integer NOT NULL,
  in_use        integer NOT NULL DEFAULT 0,
  revision      integer NOT NULL DEFAULT 1,
  has_line      boolean NOT NULL DEFAULT false,
  heads         uuid[]  NOT NULL DEFAULT
    '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000000}',
  kind          text    NOT NULL CHECK (kind IN ('queue', 'job-type', 'resource')),
  key           text    NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX scope_kind ON scope (application, kind, id);
CREATE INDEX scope_line ON scope (application, id) WHERE has_line;

CREATE TABLE hold (
  job   uuid   NOT NULL,
  scope uuid   NOT NULL,
  claim uuid   NOT NULL,
  fence bigint,                                -- where the scope gives tokens
  PRIMARY KEY (job, scope)
);

CREATE INDEX hold_scope ON hold (scope);

-- How many may begin within a window. Its grants are a ring of `most` slots: number n lies in slot n mod most, and there
-- is room for number n when what lies there is older than the window. `promised` counts the grants whose leaving has
-- been promised to a job that waits. Its time never goes back: `shift_ms` is added to the store's where that did.

CREATE TABLE rate_window (
  id            uuid    PRIMARY KEY,
  created_at_ms bigint  NOT NULL,
  window_ms     bigint  NOT NULL,
  granted       bigint  NOT NULL DEFAULT 0,
  promised      bigint  NOT NULL DEFAULT 0,
  last_ms       bigint  NOT NULL DEFAULT 0,
  shift_ms      bigint  NOT NULL DEFAULT 0,
  calls         bigint  NOT NULL DEFAULT 0,
  application   integer NOT NULL,
  most          integer NOT NULL,
  has_line      boolean NOT NULL DEFAULT false,
  heads         uuid[]  NOT NULL DEFAULT
    '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000000}',
  kind          text    NOT NULL CHECK (kind IN ('job-type', 'resource')),
  key           text    NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX rate_window_kind ON rate_window (application, kind, id);
CREATE INDEX rate_window_line ON rate_window (application, id) WHERE has_line;

CREATE TABLE rate_grant (
  rate_window uuid    NOT NULL,
  slot        integer NOT NULL,
  at_ms       bigint  NOT NULL,                -- by the window's own time
  PRIMARY KEY (rate_window, slot)
) WITH (fillfactor = 70);

-- Queues that were ever paused.

CREATE TABLE pause (
  application integer NOT NULL,
  queue       text    NOT NULL,
  revision    integer NOT NULL,
  since_ms    bigint,                          -- NULL: it is open again
  PRIMARY KEY (application, queue)
);

-- Raised by every pause and resume, and when a scope of a queue or of a job type comes to be: who claims keeps what it
-- knows of these as long as the number stays.

CREATE TABLE intake (
  application integer PRIMARY KEY REFERENCES application (id),
  revision    bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

INSERT INTO intake (application) SELECT application.id FROM application;

ALTER TABLE worker ADD COLUMN kinds text;      -- a JSON array of [name, version]; NULL: it did not tell

ALTER TABLE audit ADD COLUMN target text;      -- what else than a job it was about
