-- Jobs from receipt to closing.
--
--   job ──1:1──▶ hot ─────n:1──▶ claim     while a job is live: the one narrow row that claims, renewals and
--    │                                       settlements change, and the claim call that holds it
--    ├─────1:n──▶ attempt                  append-only: how each attempt ended
--    │               └──────1:0..1──▶ detail what is heavy or private about it
--    └─────1:n──▶ closing                  append-only: how each generation ended that no success has closed
--
-- A job's state, generation and revision are those of its hot row while it is live, otherwise of its last end: a closing,
-- or the attempt that succeeded, which says so itself, since one row costs less than two.
-- The rows of job, attempt, closing and audit are the events: `position` numbers them together in the order in which
-- they were written, `xid` says by which transaction, so that a reader can stop in front of what may still commit. A
-- batch that got its number early can meet what a later number has committed meanwhile: what it writes about such a job
-- bears the later number, else it would be told before what it followed from.
-- Names are unqualified: the migration sets the schema. Ids and tokens are UUIDs, times milliseconds since 1970-01-01 UTC.
-- Hot paths have no foreign keys: they would lock a parent row for each child.

-- Store, revision and applications ---------------------------------------------------------------------------------

CREATE TABLE store (
  one                     boolean PRIMARY KEY DEFAULT true CHECK (one),
  id                      uuid    NOT NULL,
  created_at_ms           bigint  NOT NULL,
  capabilities_from_start text[]  NOT NULL     -- what every application gets that comes to be in this store
);

CREATE TABLE migration (
  number        integer PRIMARY KEY,
  name          text    NOT NULL,
  checksum      text    NOT NULL,              -- SHA-256 of the migration's file
  applied_at_ms bigint  NOT NULL
);

CREATE TABLE application (
  id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text    NOT NULL UNIQUE,
  admission    text    NOT NULL DEFAULT 'open' CHECK (admission IN ('open', 'drain', 'maintenance')),
  capabilities text[]  NOT NULL
);

-- The store's time.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Every statement that writes calls this once. It says true, or refuses with what a worker, a producer or an operator
-- must know; DETAIL is the value that was found, HINT the application's name. What it reads stays locked against ACCESS
-- EXCLUSIVE until the transaction ends: whoever changes store, migration or application under that lock knows that every
-- act which was let in before has ended.
CREATE FUNCTION gate(
  store_id uuid, revision integer, application integer, act text, allow_unsafe boolean, known text[]
) RETURNS boolean LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  new_work CONSTANT text[] := '{register,dispatch,claim,begin,retry,rerun}';
  is_well boolean;
  found record;
  unknown text;
BEGIN
  -- Mostly nothing stands in the way, and one question says so.
  SELECT own.id = gate.store_id AND (SELECT max(step.number) FROM migration AS step) = gate.revision
      AND coalesce(asked.admission = 'open' AND asked.capabilities <@ gate.known, true)
      AND (gate.allow_unsafe OR current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') <> 'off')
    INTO is_well
    FROM store AS own LEFT JOIN application AS asked ON asked.id = gate.application
    WHERE own.one;
  IF is_well THEN
    RETURN true;
  END IF;
  SELECT own.id, (SELECT max(step.number) FROM migration AS step) AS number, asked.name, asked.admission, asked.capabilities
    INTO found
    FROM store AS own LEFT JOIN application AS asked ON asked.id = gate.application
    WHERE own.one;
  IF found.number IS DISTINCT FROM gate.revision THEN
    RAISE EXCEPTION USING ERRCODE = 'RW003', MESSAGE = 'the store has another revision',
      DETAIL = coalesce(found.number, 0)::text;
  END IF;
  IF found.id IS DISTINCT FROM gate.store_id THEN
    RAISE EXCEPTION USING ERRCODE = 'RW002', MESSAGE = 'this is another store', DETAIL = coalesce(found.id::text, '');
  END IF;
  IF found.admission <> 'open' AND (
    found.admission = 'maintenance' OR gate.act = ANY (new_work)
  ) THEN
    RAISE EXCEPTION USING ERRCODE = 'RW001', MESSAGE = 'the application does not admit this', DETAIL = found.admission,
      HINT = found.name;
  END IF;
  IF NOT found.capabilities <@ gate.known AND gate.act = ANY (new_work) THEN
    SELECT min(active.name) INTO unknown FROM unnest(found.capabilities) AS active (name)
      WHERE active.name <> ALL (gate.known);
    RAISE EXCEPTION USING ERRCODE = 'RW005', MESSAGE = 'the application has an unknown capability', DETAIL = unknown,
      HINT = found.name;
  END IF;
  IF NOT gate.allow_unsafe AND current_setting('synchronous_commit') = 'off' THEN
    RAISE EXCEPTION USING ERRCODE = 'RW004', MESSAGE = 'a commit could be lost', DETAIL = 'synchronous_commit=off';
  END IF;
  IF NOT gate.allow_unsafe AND current_setting('fsync') = 'off' THEN
    RAISE EXCEPTION USING ERRCODE = 'RW004', MESSAGE = 'a commit could be lost', DETAIL = 'fsync=off';
  END IF;
  RETURN true;
END
$$;

-- Undo the statement that calls it, for a reason that has an SQLSTATE of its own; DETAIL is what was found.
CREATE FUNCTION undo(reason text, finding text) RETURNS boolean LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = undo.reason, MESSAGE = 'the statement undid itself', DETAIL = undo.finding;
END
$$;

-- Names that millions of rows share, as small numbers. Rows are only ever added. -----------------------------------

CREATE TABLE lane (
  id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  application integer NOT NULL REFERENCES application (id),
  queue       text    NOT NULL,
  priority    text    NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
  UNIQUE (application, queue, priority)
);

CREATE TABLE kind (
  id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  application integer NOT NULL REFERENCES application (id),
  name        text    NOT NULL,
  version     integer NOT NULL,
  UNIQUE (application, name, version)
);

CREATE TABLE policy (
  id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  json text    NOT NULL UNIQUE
);

-- By twos: the end that an attempt tells stands behind the attempt.
CREATE SEQUENCE position AS bigint INCREMENT BY 2;

-- What was asked for. Never changed. --------------------------------------------------------------------------------

CREATE TABLE job (
  id            uuid    PRIMARY KEY,
  position      bigint  NOT NULL DEFAULT nextval('position'),
  xid           xid8    NOT NULL DEFAULT pg_current_xact_id(),
  created_at_ms bigint  NOT NULL,
  expires_at_ms bigint,
  operation_id  uuid    NOT NULL,
  application   integer NOT NULL,
  lane          integer NOT NULL,
  kind          integer NOT NULL,
  policy        integer NOT NULL,
  payload_bytes integer NOT NULL,
  tenant        text,
  traceparent   text,
  tracestate    text,
  metadata      bytea,                         -- JSON, byte for byte as it came
  payload       bytea   NOT NULL               -- JSON, byte for byte as it came
);

-- Lists begin with the latest. By position: no other index has that order, so no plan passes these by.
CREATE INDEX job_lane ON job (lane, position);
CREATE INDEX job_kind ON job (kind, position);
CREATE INDEX job_tenant ON job (tenant, position) WHERE tenant IS NOT NULL;

-- A live job. It leaves when its generation ends. No index holds what a claim, a renewal or a release changes, and of each
-- page more than half is kept free, for a leased row is wider than a waiting one and a claim takes all of a page at once:
-- so these only write beside the row and touch no index (HOT updates).

CREATE TABLE hot (
  job                    uuid    PRIMARY KEY,
  due_at_ms              bigint  NOT NULL,
  lease_until_ms         bigint,
  claim                  uuid,                 -- the token of the claim that holds it, while it is leased
  expires_at_ms          bigint,               -- every planned retry moves it on (the job keeps what was asked for)
  cancel_requested_at_ms bigint,               -- somebody cancelled it while it was leased
  begun_at_ms            bigint,               -- the executor's mark of the attempt under way, once the worker told it
  told_xid               xid8,                 -- a transaction behind which its next event is to be told
  application            integer NOT NULL,
  lane                   integer NOT NULL,
  kind                   integer NOT NULL,
  payload_bytes          integer NOT NULL,
  generation             integer NOT NULL DEFAULT 1,
  revision               integer NOT NULL DEFAULT 1,
  attempts               integer NOT NULL DEFAULT 0,   -- the number of the generation's last attempt
  executions             smallint NOT NULL DEFAULT 0,  -- charged in this generation
  max_executions         smallint NOT NULL,
  unstarted              smallint NOT NULL DEFAULT 0,  -- claims in a row that were abandoned before they began
  crashes                smallint NOT NULL DEFAULT 0,  -- attempts of this generation that killed their executor
  state                  text    NOT NULL DEFAULT 'pending',   -- pending, reserved, running or retrying
  code                   text,                 -- why a job that was tried before waits
  CHECK ((claim IS NULL) = (lease_until_ms IS NULL))   -- more would be felt: each claim and renewal evaluates it
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- All live jobs of a lane in claim order. Leased ones stand among them and are passed over at their row; kinds that a
-- worker cannot decode are passed over here.
CREATE INDEX hot_ready ON hot (lane, due_at_ms, job, kind);

-- Jobs with an expiry, those that are leased too; and those whose attempt is asked to stop, of which hardly ever one stands.
CREATE INDEX hot_expiry ON hot (application, expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX hot_cancel ON hot (application) WHERE cancel_requested_at_ms IS NOT NULL;

-- Claim calls that took something, while one of their leases may be left. Recovery finds what has run out through
-- them: renewals move the leases of `hot` alone, so a claim may be looked at in vain and is then put off.

CREATE TABLE claim (
  token            uuid    PRIMARY KEY,        -- chosen by the worker: every later write of an attempt must show it
  first_attempt_id uuid    NOT NULL,           -- the ids of its attempts are counted from it, in the order of jobs
  worker           uuid    NOT NULL,
  claimed_at_ms    bigint  NOT NULL,
  check_at_ms      bigint  NOT NULL,           -- none of its leases runs out before
  application      integer NOT NULL,
  jobs             uuid[]  STORAGE PLAIN NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX claim_check ON claim (application, check_at_ms);

-- The id of the attempt in that place of a claim, from 1: counted on from the claim's first one, a UUIDv7, in the part
-- that is random; the bit above it is cleared, so nothing carries on.
CREATE FUNCTION attempt_id(first_attempt_id uuid, place bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
  AS $$
    SELECT (left(digits, 16) || to_hex(
      (('x' || right(digits, 16))::bit(64)::bigint & ~(1::bigint << 61)) + attempt_id.place - 1
    ))::uuid
    FROM replace(attempt_id.first_attempt_id::text, '-', '') AS digits
  $$;

-- How attempts ended. Only ever appended to. -----------------------------------------------------------------------

CREATE TABLE attempt (
  job            uuid    NOT NULL,
  generation     integer NOT NULL,
  number         integer NOT NULL,
  position       bigint  NOT NULL DEFAULT nextval('position'),
  xid            xid8    NOT NULL DEFAULT pg_current_xact_id(),
  attempt_id     uuid    NOT NULL,
  worker         uuid,
  claimed_at_ms  bigint,
  begun_at_ms    bigint,                       -- the executor's mark (NULL when it left none)
  ended_at_ms    bigint  NOT NULL,
  delay_ms       bigint,                       -- how long the job was made to wait after it, as it was drawn
  wall_us        bigint,
  cpu_us         bigint,
  rss_peak_bytes bigint,
  application    integer,                      -- this and the next two: only where it closed its generation, as succeeded
  revision       integer,
  kind           integer NOT NULL,
  executions     smallint,
  outcome        text    NOT NULL,
  code           text,
  usage          text,                         -- all that was measured: a JSON array in the order of Usage
  death          text,                         -- how its executor died: a JSON array in the order of Death
  PRIMARY KEY (job, generation, number)
);

-- How all other generations ended. Only ever appended to.

CREATE TABLE closing (
  job                    uuid     NOT NULL,
  generation             integer  NOT NULL,
  position               bigint   NOT NULL DEFAULT nextval('position'),
  xid                    xid8     NOT NULL DEFAULT pg_current_xact_id(),
  ended_at_ms            bigint   NOT NULL,
  cancel_requested_at_ms bigint,               -- when somebody cancelled it, whatever it ended in
  application            integer  NOT NULL,
  revision               integer  NOT NULL,
  executions             smallint NOT NULL,
  state                  text     NOT NULL,
  code                   text,
  PRIMARY KEY (job, generation)
);

-- Most jobs succeed: a list of those reads the jobs from their end. A list of others repeats this condition.
CREATE INDEX closing_unsuccessful ON closing (application, state, position) WHERE state <> 'succeeded';

-- How a job's last generation that is over ended. No row where none is.
CREATE FUNCTION last_end(job uuid) RETURNS TABLE (
  application integer, generation integer, revision integer, executions smallint, ended_at_ms bigint,
  cancel_requested_at_ms bigint, state text, code text
) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT ended.*
  FROM (
    (
      SELECT closing.application, closing.generation, closing.revision, closing.executions, closing.ended_at_ms,
        closing.cancel_requested_at_ms, closing.state, closing.code
      FROM closing
      WHERE closing.job = last_end.job
      ORDER BY closing.generation DESC
      LIMIT 1
    )
    UNION ALL
    (
      SELECT attempt.application, attempt.generation, attempt.revision, attempt.executions, attempt.ended_at_ms,
        NULL::bigint AS cancel_requested_at_ms, 'succeeded'::text AS state, NULL::text AS code
      FROM attempt
      WHERE attempt.job = last_end.job AND attempt.revision IS NOT NULL
      ORDER BY attempt.generation DESC, attempt.number DESC
      LIMIT 1
    )
  ) AS ended
  ORDER BY ended.generation DESC
  LIMIT 1;
END;

-- How a job stands, as lists show it: by its hot row, else by its last end. One row, of NULLs for no job.
CREATE FUNCTION stands(job uuid) RETURNS TABLE (
  state text, code text, generation integer, revision integer, executions smallint, due_at_ms bigint,
  begun_at_ms bigint, ended_at_ms bigint, cancel_requested_at_ms bigint
) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT
    coalesce(live.state, closed.state),
    CASE WHEN live.job IS NULL THEN closed.code WHEN live.claim IS NULL THEN live.code END,
    coalesce(live.generation, closed.generation),
    coalesce(live.revision, closed.revision),
    coalesce(live.executions, closed.executions),
    CASE WHEN live.claim IS NULL THEN live.due_at_ms END,
    live.begun_at_ms,
    closed.ended_at_ms,
    CASE WHEN live.job IS NULL THEN closed.cancel_requested_at_ms ELSE live.cancel_requested_at_ms END
  FROM (SELECT) AS one
  LEFT JOIN LATERAL (SELECT hot.* FROM hot WHERE hot.job = stands.job LIMIT 1) AS live ON true
  LEFT JOIN LATERAL last_end(CASE WHEN live.job IS NULL THEN stands.job END) AS closed ON true;
END;

-- What an attempt left behind that is heavy or private. It may be deleted before its attempt.

CREATE TABLE detail (
  attempt     uuid   PRIMARY KEY,              -- attempt.attempt_id
  ended_at_ms bigint NOT NULL,                 -- its own age
  error       text,                            -- a JSON array in the order of ErrorDetail
  black_box   text,                            -- a JSON array in the order of BlackBox
  result      bytea                            -- JSON, byte for byte as it came
);

-- Who works here, as the workers last said themselves. -------------------------------------------------------------

CREATE TABLE worker (
  id             uuid    PRIMARY KEY,
  seen_at_ms     bigint  NOT NULL,
  departed_at_ms bigint,
  application    integer NOT NULL,
  process        integer NOT NULL,
  executors      integer NOT NULL,
  host           text    NOT NULL,
  queues         text    NOT NULL              -- a JSON array of names
) WITH (fillfactor = 50);

-- What a worker's executors do, as it told last. Apart from the worker, so that its row stays narrow.

CREATE TABLE activity (
  worker     uuid   PRIMARY KEY,
  told_at_ms bigint NOT NULL,
  executors  text   NOT NULL                   -- a JSON array of ExecutorActivity
);

-- Stacks of running attempts that somebody wants to see, and the answers of their workers.

CREATE TABLE look (
  attempt_id     uuid    PRIMARY KEY,
  job            uuid    NOT NULL,
  worker         uuid    NOT NULL,
  claim_token    uuid    NOT NULL,
  asked_at_ms    bigint  NOT NULL,
  answered_at_ms bigint,
  application    integer NOT NULL,
  text           text
);

CREATE INDEX look_open ON look (worker) WHERE answered_at_ms IS NULL;

-- When the next recovery pass of an application is due. Whoever moves it on runs the pass.

CREATE TABLE recovery (
  application integer PRIMARY KEY REFERENCES application (id),
  next_at_ms  bigint  NOT NULL
) WITH (fillfactor = 50);

-- What an operator did. A job that was acted upon stands in it with its generation; a retry or rerun with the one that
-- it opened.

CREATE TABLE audit (
  position      bigint  PRIMARY KEY DEFAULT nextval('position'),
  xid           xid8    NOT NULL DEFAULT pg_current_xact_id(),
  at_ms         bigint  NOT NULL,
  job           uuid,
  command_id    uuid,
  application   integer,
  generation    integer,
  actor         text    NOT NULL,
  actor_display text,
  actor_scheme  text,
  action        text    NOT NULL,
  before        text,
  after         text,
  reason        text
);

CREATE INDEX audit_job ON audit (job, position) WHERE job IS NOT NULL;

-- A generation is opened once, however late whoever wants to open it sees that it was.
CREATE UNIQUE INDEX audit_opened ON audit (job, generation) WHERE action IN ('retry', 'rerun');

-- Commands of operators that changed something, so that one that is sent again gets its first answer.

CREATE TABLE command (
  application integer NOT NULL,
  id          uuid    NOT NULL,
  at_ms       bigint  NOT NULL,
  fingerprint bytea   NOT NULL,                -- of what was asked for
  reply       text    NOT NULL,                -- the answers, a JSON array of arrays
  PRIMARY KEY (application, id)
);

-- Events in the order of their commits.
CREATE INDEX job_events ON job (xid, position);
CREATE INDEX attempt_events ON attempt (xid, position);
CREATE INDEX closing_events ON closing (xid, position);
CREATE INDEX audit_events ON audit (xid, position);
