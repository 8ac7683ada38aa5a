-- Who is let in, decided under the locks of the limits concerned: what `runwick.policy.admission`, `.limits` and `.lines`
-- say, line by line.
--
--   claim ──▶ judge ──▶ taken · expired · parked · deferred, and who is called
--   settle, release, recover, begin ──▶ free ──▶ who is called
--   cancel, expire ──▶ pass_on ──▶ who is called                       tend ──▶ who is called
--
-- Locks are taken in one order everywhere: rows of hot (passed over where somebody holds them), scopes by id, windows by
-- id, slots; then rows of hot in lines (passed over). Each statement of a VOLATILE function sees what was committed
-- before it began: so what it reads behind a lock that it waited for is how things stand now.
--
-- A limit is *idle* where it has room, and calls are left that it owes its line: because somebody's transaction holds the
-- rows of all who could be called, be it only because it tried to claim them, or because one act may call no more. Nobody
-- can wait for such a row, since whoever holds it may be waiting for the limit. So whoever calls answers behind those that
-- were called, with a lane of NULL, which limit (`job`) owes how many calls (`due_at_ms`); of a window, 0 means that
-- leavings are left to be promised. Whoever is told so calls again a little later (`call_again`).

-- By how much a window that refuses a job moves it on at least, besides 250 ms.
CREATE FUNCTION jitter_ms(job uuid) RETURNS integer LANGUAGE sql IMMUTABLE
  AS $$ SELECT get_byte(uuid_send(jitter_ms.job), 15) % 101 $$;

-- The lanes of an application's paused queues.
CREATE FUNCTION paused_lanes(application integer) RETURNS integer[] LANGUAGE sql STABLE SET search_path FROM CURRENT
  AS $$
    SELECT coalesce(array_agg(lane.id), '{}')
    FROM pause JOIN lane ON lane.application = pause.application AND lane.queue = pause.queue
    WHERE pause.application = paused_lanes.application AND pause.since_ms IS NOT NULL
  $$;

-- Where a thousand jobs of paused queues stand in front of a rank, it is looked at a thousand behind them as well, from
-- the place that is kept here: acts move it on where they find nobody, and at the end of the rank it begins anew.
ALTER TABLE scope ADD COLUMN looked uuid[];        -- by the number of the rank, from 1
ALTER TABLE rate_window ADD COLUMN looked uuid[];

-- The first job of a rank of a line, from `behind` on, whose row nobody holds and whose queue is not paused, locked; and
-- where to look on, which is NULL where less than a thousand are left.
CREATE FUNCTION lock_first(limit_id uuid, asked integer, behind uuid, paused integer[], OUT job uuid, OUT edge uuid)
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  SELECT own.job INTO lock_first.job
    FROM (
      SELECT hot.job, hot.lane
      FROM hot
      WHERE hot.line IS NOT NULL
        AND (hot.line, hot.rank, hot.job) >= (lock_first.limit_id, lock_first.asked, lock_first.behind)
        AND (hot.line, hot.rank, hot.job)
          <= (lock_first.limit_id, lock_first.asked, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      ORDER BY hot.line, hot.rank, hot.job
      LIMIT 1000
    ) AS near
    CROSS JOIN LATERAL (
      SELECT hot.job FROM hot WHERE hot.job = near.job AND hot.line = lock_first.limit_id FOR UPDATE SKIP LOCKED
    ) AS own
    WHERE near.lane <> ALL (lock_first.paused)
    ORDER BY near.job
    LIMIT 1;
  IF lock_first.job IS NULL AND cardinality(lock_first.paused) > 0 THEN
    SELECT hot.job INTO lock_first.edge
      FROM hot
      WHERE hot.line IS NOT NULL
        AND (hot.line, hot.rank, hot.job) >= (lock_first.limit_id, lock_first.asked, lock_first.behind)
        AND (hot.line, hot.rank, hot.job)
          <= (lock_first.limit_id, lock_first.asked, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      ORDER BY hot.line, hot.rank, hot.job
      OFFSET 1000
      LIMIT 1;
  END IF;
END
$$;

-- (Lines are read by whole keys: where line and rank were asked for as equal, the order would be that of the job alone,
-- which the server may prefer to read from the index of all live jobs.)
-- Call the next job out of the line of a limit that is locked. Ranks take turns; one that has nobody leaves its turn to
-- the highest that has. A job of a paused queue stays where it is; a row that somebody holds is passed over.
CREATE FUNCTION call_next(
  called_for uuid,
  calls bigint,                                -- jobs called out of this line so far
  paused integer[],
  leaves_ms bigint,                            -- when it is due then; NULL: when it was due
  floor_ms bigint,                             -- not before this and its jitter; NULL: at `leaves_ms` exactly
  INOUT heads uuid[],                          -- the smallest ids that may stand in the line, per rank
  INOUT looked uuid[],                         -- where to look behind a thousand of paused queues, per rank
  OUT job uuid,                                -- NULL: there is nobody to call
  OUT lane integer,
  OUT due_at_ms bigint
) LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  turns CONSTANT integer[] := '{0,1,0,2,0,1,0,0,1,0}';
  turn CONSTANT integer := turns[call_next.calls % 10 + 1];
  asked integer;
  first uuid;
  further uuid;
BEGIN
  FOREACH asked IN ARRAY turn || array_remove('{0,1,2}', turn) LOOP
    SELECT hot.job INTO first
      FROM hot
      WHERE hot.line IS NOT NULL AND (hot.line, hot.rank, hot.job) >= (call_next.called_for, asked, call_next.heads[asked + 1])
        AND (hot.line, hot.rank, hot.job) <= (call_next.called_for, asked, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      ORDER BY hot.line, hot.rank, hot.job
      LIMIT 1;
    CONTINUE WHEN first IS NULL;
    SELECT found.job, found.edge INTO call_next.job, further
      FROM lock_first(call_next.called_for, asked, first, call_next.paused) AS found;
    IF further IS NOT NULL THEN
      further := greatest(further, call_next.looked[asked + 1]);
      SELECT found.job, CASE WHEN found.job IS NULL THEN found.edge ELSE further END INTO call_next.job, further
        FROM lock_first(call_next.called_for, asked, further, call_next.paused) AS found;
      call_next.looked[asked + 1] := further;
    END IF;
    CONTINUE WHEN call_next.job IS NULL;
    -- Who was passed over still stands there.
    call_next.heads[asked + 1] := first;
    UPDATE hot SET
      line = NULL,
      rank = NULL,
      called = call_next.called_for,
      due_at_ms = CASE
        WHEN call_next.leaves_ms IS NULL THEN hot.due_at_ms
        WHEN call_next.floor_ms IS NULL THEN call_next.leaves_ms
        ELSE greatest(call_next.leaves_ms, call_next.floor_ms + jitter_ms(hot.job))
      END
      WHERE hot.job = call_next.job
      RETURNING hot.lane, hot.due_at_ms INTO call_next.lane, call_next.due_at_ms;
    EXIT;
  END LOOP;
END
$$;

-- The heads of a line in which these jobs came to stand.
CREATE FUNCTION lowered(heads uuid[], ranks integer[], jobs uuid[]) RETURNS uuid[] LANGUAGE sql IMMUTABLE
  AS $$
    SELECT array_agg(least(head.job, (
      SELECT came.job
      FROM unnest(lowered.ranks, lowered.jobs) AS came (rank, job)
      WHERE came.rank = head.place - 1
      ORDER BY came.job
      LIMIT 1
    )) ORDER BY head.place)
    FROM unnest(lowered.heads) WITH ORDINALITY AS head (job, place)
  $$;

-- Whether anybody stands in a line behind its heads.
CREATE FUNCTION has_somebody(limit_id uuid, heads uuid[]) RETURNS boolean LANGUAGE plpgsql VOLATILE
  SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN EXISTS (
    SELECT
    FROM unnest(has_somebody.heads) WITH ORDINALITY AS head (job, place)
    CROSS JOIN LATERAL (
      SELECT
      FROM hot
      WHERE hot.line IS NOT NULL AND (hot.line, hot.rank, hot.job) >= (has_somebody.limit_id, head.place - 1, head.job)
        AND (hot.line, hot.rank, hot.job)
          <= (has_somebody.limit_id, head.place - 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
      ORDER BY hot.line, hot.rank, hot.job
      LIMIT 1
    ) AS somebody
  );
END
$$;

-- Whether anybody stands in a line behind its heads who could be called if nobody held the row: a queue that is paused
-- keeps its jobs. Behind a thousand of these there may be somebody.
CREATE FUNCTION has_waiting(limit_id uuid, heads uuid[], paused integer[]) RETURNS boolean LANGUAGE plpgsql VOLATILE
  SET search_path FROM CURRENT
AS $$
BEGIN
  IF cardinality(has_waiting.paused) = 0 THEN
    RETURN has_somebody(has_waiting.limit_id, has_waiting.heads);
  END IF;
  RETURN EXISTS (
    SELECT
    FROM unnest(has_waiting.heads) WITH ORDINALITY AS head (job, place)
    CROSS JOIN LATERAL (
      SELECT count(*) AS many, bool_or(first.lane <> ALL (has_waiting.paused)) AS is_open
      FROM (
        SELECT hot.lane
        FROM hot
        WHERE hot.line IS NOT NULL AND (hot.line, hot.rank, hot.job) >= (has_waiting.limit_id, head.place - 1, head.job)
          AND (hot.line, hot.rank, hot.job)
            <= (has_waiting.limit_id, head.place - 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
        ORDER BY hot.line, hot.rank, hot.job
        LIMIT 1001
      ) AS first
    ) AS near
    WHERE near.is_open OR near.many > 1000
  );
END
$$;

-- Call jobs out of the line of a scope that is locked, as many as it got places, though at most `most_calls`; answers
-- whom, and whether it is idle then.
CREATE FUNCTION call_into_scope(scope_id uuid, count integer, most_calls integer)
RETURNS TABLE (lane integer, due_at_ms bigint, job uuid) LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  own scope;
  paused integer[];
  next record;
  came integer := 0;
BEGIN
  SELECT * INTO own FROM scope WHERE scope.id = call_into_scope.scope_id;
  IF call_into_scope.count <= 0 OR NOT own.has_line THEN
    RETURN;
  END IF;
  paused := paused_lanes(own.application);
  WHILE came < least(call_into_scope.count, call_into_scope.most_calls) LOOP
    next := call_next(own.id, own.calls, paused, NULL, NULL, own.heads, own.looked);
    own.heads := next.heads;
    own.looked := next.looked;
    EXIT WHEN next.job IS NULL;
    own.calls := own.calls + 1;
    came := came + 1;
    lane := next.lane;
    due_at_ms := next.due_at_ms;
    job := next.job;
    RETURN NEXT;
  END LOOP;
  own.has_line := has_somebody(own.id, own.heads);
  UPDATE scope SET calls = own.calls, heads = own.heads, looked = own.looked, has_line = own.has_line
    WHERE scope.id = own.id;
  IF came < call_into_scope.count AND own.has_line AND has_waiting(own.id, own.heads, paused) THEN
    lane := NULL;
    due_at_ms := call_into_scope.count - came;
    job := own.id;
    RETURN NEXT;
  END IF;
END
$$;

-- By a window's own time, when there is room again for what comes a whole ring after this grant; 0 for a slot that was
-- never used.
CREATE FUNCTION leaves_ms(own rate_window, number bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
  SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN coalesce((
    SELECT slot.at_ms + own.window_ms
    FROM rate_grant AS slot
    WHERE slot.rate_window = own.id AND slot.slot = leaves_ms.number % own.most
  ), 0);
END
$$;

-- How many grants, at most so many, a window has room for at a moment of its own time: those whose slot is free by then.
CREATE FUNCTION room(own rate_window, time_ms bigint, count integer) RETURNS integer LANGUAGE plpgsql VOLATILE
  SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN (
    SELECT count(*)
    FROM generate_series(0, least(room.count, own.most) - 1) AS step (ahead)
    LEFT JOIN LATERAL (
      SELECT used.at_ms
      FROM rate_grant AS used
      WHERE used.rate_window = own.id AND used.slot = (own.granted + step.ahead) % own.most
    ) AS slot ON true
    -- Slots are used in turn, so that behind one that is not free there is none that is.
    WHERE coalesce(slot.at_ms + own.window_ms <= room.time_ms, true)
  );
END
$$;

-- Call jobs out of the line of a window that is locked: first at most `count` into room that it has, due at `due_ms`;
-- then, for each grant that nobody was promised the leaving of, one that is promised it. Answers whom, and whether it is
-- idle then.
CREATE FUNCTION call_into_window(window_id uuid, count integer, due_ms bigint, promises boolean, most_calls integer)
RETURNS TABLE (lane integer, due_at_ms bigint, job uuid) LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  own rate_window;
  paused integer[];
  floor_ms CONSTANT bigint := now_ms() + 250;
  next record;
  came integer := 0;
  is_promise boolean := false;
BEGIN
  SELECT * INTO own FROM rate_window WHERE rate_window.id = call_into_window.window_id;
  IF NOT own.has_line THEN
    RETURN;
  END IF;
  own.promised := greatest(own.promised, own.granted - own.most);
  paused := paused_lanes(own.application);
  WHILE came < call_into_window.most_calls LOOP
    IF came < call_into_window.count THEN
      next := call_next(own.id, own.calls, paused, call_into_window.due_ms, NULL, own.heads, own.looked);
    ELSE
      EXIT WHEN NOT (call_into_window.promises AND own.promised < own.granted);
      is_promise := true;
      next := call_next(
        own.id, own.calls, paused, leaves_ms(own, own.promised) - own.shift_ms, floor_ms, own.heads, own.looked
      );
    END IF;
    own.heads := next.heads;
    own.looked := next.looked;
    EXIT WHEN next.job IS NULL;
    own.calls := own.calls + 1;
    own.promised := own.promised + is_promise::integer;
    came := came + 1;
    lane := next.lane;
    due_at_ms := next.due_at_ms;
    job := next.job;
    RETURN NEXT;
  END LOOP;
  own.has_line := has_somebody(own.id, own.heads);
  UPDATE rate_window SET
    calls = own.calls,
    heads = own.heads,
    looked = own.looked,
    has_line = own.has_line,
    promised = own.promised
    WHERE rate_window.id = own.id;
  IF (came < call_into_window.count OR call_into_window.promises AND own.promised < own.granted)
    AND own.has_line AND has_waiting(own.id, own.heads, paused)
  THEN
    lane := NULL;
    due_at_ms := greatest(call_into_window.count - came, 0);
    job := own.id;
    RETURN NEXT;
  END IF;
END
$$;

-- Lock these limits in the one order; those that are not there are passed by.
CREATE FUNCTION lock_limits(ids uuid[]) RETURNS void LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM
    FROM (SELECT DISTINCT asked.id FROM unnest(lock_limits.ids) AS asked (id) ORDER BY asked.id) AS asked
    CROSS JOIN LATERAL (SELECT FROM scope WHERE scope.id = asked.id FOR UPDATE) AS own;
  PERFORM
    FROM (SELECT DISTINCT asked.id FROM unnest(lock_limits.ids) AS asked (id) ORDER BY asked.id) AS asked
    CROSS JOIN LATERAL (SELECT FROM rate_window WHERE rate_window.id = asked.id FOR UPDATE) AS own;
END
$$;

-- Give back what the attempts of these jobs hold, which the caller has locked, and call as many jobs for each scope as
-- it got places. Answers whom, and who is idle.
CREATE FUNCTION free(jobs uuid[], most_calls integer)
RETURNS TABLE (lane integer, due_at_ms bigint, job uuid) LANGUAGE plpgsql VOLATILE STRICT SET search_path FROM CURRENT
AS $$
DECLARE
  freed record;
  next record;
  came integer := 0;
BEGIN
  PERFORM
    FROM (SELECT DISTINCT hold.scope FROM hold WHERE hold.job = ANY (free.jobs) ORDER BY hold.scope) AS held
    CROSS JOIN LATERAL (SELECT FROM scope WHERE scope.id = held.scope FOR UPDATE) AS own;
  FOR freed IN
    WITH gone AS (
      DELETE FROM hold WHERE hold.job = ANY (free.jobs) RETURNING hold.scope
    ), counted AS (
      SELECT gone.scope, count(*)::integer AS places FROM gone GROUP BY gone.scope
    ), lowered AS (
      UPDATE scope SET in_use = scope.in_use - counted.places
      FROM counted
      WHERE scope.id = counted.scope
      RETURNING scope.id, least(counted.places, scope.capacity - scope.in_use) AS room, scope.has_line
    )
    SELECT lowered.id, lowered.room FROM lowered WHERE lowered.has_line AND lowered.room > 0 ORDER BY lowered.id
  LOOP
    FOR next IN SELECT * FROM call_into_scope(freed.id, freed.room, free.most_calls - came) LOOP
      came := came + (next.lane IS NOT NULL)::integer;
      lane := next.lane; due_at_ms := next.due_at_ms; job := next.job;
      RETURN NEXT;
    END LOOP;
  END LOOP;
END
$$;

-- Waiting jobs leave their lane that were called in for these limits, or promised a place that was to be had at these
-- times: call the next of each line instead, if there is room. Answers whom, and who is idle.
CREATE FUNCTION pass_on(limits uuid[], dues_ms bigint[], most_calls integer)
RETURNS TABLE (lane integer, due_at_ms bigint, job uuid) LANGUAGE plpgsql VOLATILE STRICT SET search_path FROM CURRENT
AS $$
DECLARE
  asked record;
  next record;
  ring rate_window;
  now_ms bigint;
  before integer;
  came integer := 0;
  is_idle boolean;
BEGIN
  PERFORM lock_limits(pass_on.limits);
  now_ms := now_ms();
  FOR asked IN
    SELECT left_by.id, greatest(left_by.due_ms, now_ms) AS due_ms FROM unnest(pass_on.limits, pass_on.dues_ms) AS left_by (id, due_ms)
  LOOP
    before := came;
    FOR next IN
      SELECT place.*
      FROM scope CROSS JOIN LATERAL call_into_scope(
        scope.id, least(scope.capacity - scope.in_use, 1), pass_on.most_calls - came
      ) AS place
      WHERE scope.id = asked.id
    LOOP
      came := came + (next.lane IS NOT NULL)::integer;
      lane := next.lane; due_at_ms := next.due_at_ms; job := next.job;
      RETURN NEXT;
    END LOOP;
    -- The window's own time never goes back: where the server's did, that is added from now on.
    UPDATE rate_window SET shift_ms = greatest(rate_window.shift_ms, rate_window.last_ms - now_ms)
      WHERE rate_window.id = asked.id
      RETURNING * INTO ring;
    CONTINUE WHEN NOT FOUND OR asked.due_ms <= now_ms AND room(ring, now_ms + ring.shift_ms, 1) = 0;
    is_idle := false;
    FOR next IN
      SELECT * FROM call_into_window(ring.id, 1, asked.due_ms, false, least(1, pass_on.most_calls - came))
    LOOP
      came := came + (next.lane IS NOT NULL)::integer;
      is_idle := is_idle OR next.lane IS NULL;
      lane := next.lane; due_at_ms := next.due_at_ms; job := next.job;
      RETURN NEXT;
    END LOOP;
    -- A promise that nobody stands in line for: the next refused job gets it. Or who is called a little later, where it
    -- is nobody's only because nobody could be called now.
    UPDATE rate_window SET promised = greatest(rate_window.promised, rate_window.granted - rate_window.most) - 1
      WHERE came = before AND rate_window.id = ring.id
        AND (NOT rate_window.has_line OR is_idle AND asked.due_ms > now_ms)
        AND rate_window.granted - greatest(rate_window.promised, rate_window.granted - rate_window.most)
          < least(rate_window.granted, rate_window.most);
  END LOOP;
END
$$;

-- Judge the jobs that a claim found, which it has locked, in claim order. Answers one row per job that was judged: its
-- place, its fate and, for one that is parked, in whose line; for one that is deferred, for which window and until when;
-- for one that is taken, how many scopes it holds and its tokens, [key, value] as declared. Then whom it called out of
-- lines, and who is idle; and one row of why it looked no further: 'lone', 'full' or 'again'. Or it answers 'short' alone, and has
-- changed nothing: a turn gave less than it may for what is to be moved aside, and more of it could be read at once.
CREATE FUNCTION judge(
  claim uuid,
  jobs uuid[],
  turns bigint[],                              -- per job: from which turn of the plan it came
  bytes integer[],
  lone boolean[],
  expired boolean[],
  called uuid[],
  ranks integer[],                             -- of its priority
  limited boolean[],                           -- whether it has limits of its own
  lane_scopes uuid[],                          -- its queue's; NULL where that has none
  kind_scopes uuid[],                          -- its type's, likewise
  most bigint[],                               -- per turn
  want bigint,
  free bigint,
  room_bytes bigint,
  spare bigint,                                -- jobs that were read of each turn beyond what it may give
  most_moved bigint,                           -- jobs to move aside, at most
  most_calls bigint
) RETURNS TABLE (
  place integer, fate text, at_limit uuid, due_at_ms bigint, holds integer, fences json, lane integer, job uuid
) LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  turns_count CONSTANT integer := cardinality(judge.most);
  now_ms bigint;
  -- Job by job, what it needs: numbers of limits, ascending. First come scopes, then windows, each in the order of ids.
  need_places integer[]; need_ids uuid[]; need_numbers integer[]; declared bigint[];
  scopes integer; numbers integer; first integer; last integer := 0;
  -- By the number of a limit.
  limits uuid[] := '{}'; rooms integer[] := '{}'; taken integer[]; tokens bigint[]; keys text[];
  rings rate_window[] := '{}'; refused_by integer[] := '{}'; refused integer[];
  -- Job by job, what became of it: 'taken', 'expired', 'parked' with the number of a scope, or 'refused' by a window.
  fates text[] := array_fill(NULL::text, ARRAY[cardinality(judge.jobs)]);
  limits_met integer[] := array_fill(NULL::integer, ARRAY[cardinality(judge.jobs)]);
  fenced json[] := array_fill(NULL::json, ARRAY[cardinality(judge.jobs)]);
  held integer[] := array_fill(0, ARRAY[cardinality(judge.jobs)]);
  met integer; turn integer; at_turn integer;
  read_by_turn integer[] := array_fill(0, ARRAY[turns_count]);
  taken_by_turn integer[] := read_by_turn; moved_by_turn integer[] := read_by_turn;
  moved integer := 0; started integer := 0; finished integer := 0; left_bytes bigint := judge.room_bytes;
  passed_on uuid[]; calls integer := 0; promises bigint; stopped text; ring rate_window; next record;
BEGIN
  -- What is needed, and its rows behind their locks ------------------------------------------------------------------
  SELECT array_agg(need.place), array_agg(need.id), array_agg(need.number), array_agg(need.declared),
      coalesce(max(need.number) FILTER (WHERE NOT need.is_window), 0), max(need.number)
    INTO need_places, need_ids, need_numbers, declared, scopes, numbers
    FROM (
      SELECT known.place, known.id, known.is_window, known.declared,
        dense_rank() OVER (ORDER BY known.is_window, known.id)::integer AS number
      FROM (
        SELECT asked.place, own.is_window, own.id, min(own.declared) AS declared
        FROM unnest(judge.jobs, judge.limited, judge.lane_scopes, judge.kind_scopes)
          WITH ORDINALITY AS asked (job, limited, lane_scope, kind_scope, place)
        LEFT JOIN job AS facts ON asked.limited AND facts.id = asked.job
        CROSS JOIN LATERAL (
          SELECT of_job.id, false AS is_window, of_job.declared
          FROM unnest(facts.scopes || asked.lane_scope || asked.kind_scope) WITH ORDINALITY AS of_job (id, declared)
          UNION ALL
          SELECT of_job.id, true, NULL FROM unnest(facts.rates) AS of_job (id)
        ) AS own
        WHERE own.id IS NOT NULL
        GROUP BY asked.place, own.is_window, own.id
      ) AS known
      ORDER BY known.place, number
    ) AS need;
  IF scopes > 0 THEN
    SELECT array_agg(asked.id), array_agg(own.capacity - own.in_use),
        array_agg(CASE WHEN own.kind = 'resource' AND own.capacity = 1 THEN own.fence + 1 END), array_agg(own.key)
      INTO limits, rooms, tokens, keys
      FROM (
        SELECT DISTINCT need.number, need.id FROM unnest(need_numbers, need_ids) AS need (number, id)
        WHERE need.number <= scopes
        ORDER BY need.number
      ) AS asked
      LEFT JOIN LATERAL (
        SELECT scope.capacity, scope.in_use, scope.kind, scope.fence, scope.key FROM scope WHERE scope.id = asked.id FOR UPDATE
      ) AS own ON true;
  END IF;
  IF numbers > scopes THEN
    SELECT array_agg(own.ring) INTO rings
      FROM (
        SELECT DISTINCT need.number, need.id FROM unnest(need_numbers, need_ids) AS need (number, id)
        WHERE need.number > scopes
        ORDER BY need.number
      ) AS asked
      LEFT JOIN LATERAL (
        SELECT rate_window AS ring FROM rate_window WHERE rate_window.id = asked.id FOR UPDATE
      ) AS own ON true;
  END IF;
  now_ms := now_ms();
  FOR number IN 1 .. cardinality(rings) LOOP
    ring := rings[number];
    ring.promised := greatest(ring.promised, ring.granted - ring.most);
    ring.shift_ms := greatest(ring.shift_ms, ring.last_ms - now_ms);
    rings[number] := ring;
    limits := limits || ring.id;
    rooms := rooms || room(ring, now_ms + ring.shift_ms, cardinality(judge.jobs));
  END LOOP;
  taken := array_fill(0, ARRAY[cardinality(limits)]);

  -- One job after the other ------------------------------------------------------------------------------------------
  FOR at_job IN 1 .. cardinality(judge.jobs) LOOP
    first := last + 1;
    WHILE need_places[last + 1] = at_job LOOP
      last := last + 1;
    END LOOP;
    turn := judge.turns[at_job];
    read_by_turn[turn] := read_by_turn[turn] + 1;
    CONTINUE WHEN taken_by_turn[turn] >= judge.most[turn];
    IF started + finished >= judge.want THEN
      stopped := 'full';
    ELSIF judge.expired[at_job] THEN
      fates[at_job] := 'expired';
      taken_by_turn[turn] := taken_by_turn[turn] + 1;
      finished := finished + 1;
      CONTINUE;
    ELSE
      -- Scopes first: whom a scope keeps out uses up no promise; whom a window keeps out takes no place.
      met := NULL;
      FOR need IN first .. last LOOP
        IF rooms[need_numbers[need]] <= 0 THEN
          met := need_numbers[need];
          EXIT;
        END IF;
      END LOOP;
      IF met IS NOT NULL THEN
        fates[at_job] := CASE WHEN met <= scopes THEN 'parked' ELSE 'refused' END;
        limits_met[at_job] := met;
        moved_by_turn[turn] := moved_by_turn[turn] + 1;
        moved := moved + 1;
        CONTINUE WHEN moved < judge.most_moved;
        stopped := 'again';
      ELSE
        left_bytes := left_bytes - judge.bytes[at_job];
        IF started >= judge.free AND (judge.lone[at_job] OR last >= first) THEN
          stopped := 'lone';
        ELSIF left_bytes < 0 AND started > 0 THEN
          stopped := 'full';
        ELSE
          FOR need IN first .. last LOOP
            met := need_numbers[need];
            rooms[met] := rooms[met] - 1;
            taken[met] := taken[met] + 1;
            held[at_job] := held[at_job] + (met <= scopes)::integer;
          END LOOP;
          fates[at_job] := 'taken';
          taken_by_turn[turn] := taken_by_turn[turn] + 1;
          started := started + 1;
          CONTINUE;
        END IF;
      END IF;
    END IF;
    at_turn := turn;
    EXIT;
  END LOOP;
  -- A turn that was read as far as it goes at once, and gave less than it may for what was moved aside.
  IF moved > 0 THEN
    IF stopped IS NULL AND judge.spare < judge.most_moved / turns_count
      AND cardinality(judge.jobs) >= judge.want + judge.spare * turns_count
    THEN
      fate := 'short';
      RETURN NEXT;
      RETURN;
    END IF;
    FOR number IN 1 .. coalesce(at_turn - 1, turns_count) LOOP
      IF moved_by_turn[number] > 0 AND taken_by_turn[number] < judge.most[number]
        AND read_by_turn[number] >= least(judge.most[number], judge.want) + judge.spare
      THEN
        IF judge.spare < judge.most_moved / turns_count THEN
          fate := 'short';
          RETURN NEXT;
          RETURN;
        END IF;
        stopped := coalesce(stopped, 'again');
      END IF;
    END LOOP;
  END IF;

  -- What became of the limits ----------------------------------------------------------------------------------------
  IF started > 0 AND scopes > 0 THEN
    UPDATE scope SET in_use = scope.in_use + changed.taken, fence = coalesce(changed.token, scope.fence)
      FROM unnest(limits[: scopes], taken[: scopes], tokens) AS changed (id, taken, token)
      WHERE scope.id = changed.id AND changed.taken > 0;
    INSERT INTO hold (job, scope, claim, fence)
      SELECT judge.jobs[need.place], need.id, judge.claim, tokens[need.number]
      FROM unnest(need_places, need_ids, need_numbers) AS need (place, id, number)
      WHERE fates[need.place] = 'taken' AND need.number <= scopes;
    FOR next IN
      SELECT need.place, json_agg(json_build_array(keys[need.number], tokens[need.number]) ORDER BY need.declared) AS fences
      FROM unnest(need_places, need_numbers, declared) AS need (place, number, declared)
      WHERE fates[need.place] = 'taken' AND need.number <= scopes AND tokens[need.number] IS NOT NULL
      GROUP BY need.place
    LOOP
      fenced[next.place] := next.fences;
    END LOOP;
  END IF;
  FOR number IN 1 .. cardinality(rings) LOOP
    ring := rings[number];
    IF taken[scopes + number] > 0 THEN
      INSERT INTO rate_grant AS own (rate_window, slot, at_ms)
        SELECT ring.id, (ring.granted + step.ahead) % ring.most, now_ms + ring.shift_ms
        FROM generate_series(0, taken[scopes + number] - 1) AS step (ahead)
        ON CONFLICT (rate_window, slot) DO UPDATE SET at_ms = excluded.at_ms;
    END IF;
    UPDATE rate_window SET
      granted = ring.granted + taken[scopes + number],
      promised = greatest(ring.promised, ring.granted + taken[scopes + number] - ring.most),
      last_ms = CASE WHEN taken[scopes + number] > 0 THEN now_ms + ring.shift_ms ELSE ring.last_ms END,
      shift_ms = ring.shift_ms
      WHERE rate_window.id = ring.id AND (taken[scopes + number] > 0 OR rate_window.shift_ms <> ring.shift_ms);
  END LOOP;
  IF 'parked' = ANY (fates) THEN
    UPDATE scope SET has_line = true, heads = lowered(scope.heads, parked.ranks, parked.jobs)
      FROM (
        SELECT own.met, array_agg(own.rank) AS ranks, array_agg(own.job) AS jobs
        FROM unnest(fates, limits_met, judge.ranks, judge.jobs) AS own (fate, met, rank, job)
        WHERE own.fate = 'parked'
        GROUP BY own.met
      ) AS parked
      WHERE scope.id = limits[parked.met];
  END IF;

  -- Who is called instead, and what is promised ----------------------------------------------------------------------
  fate := 'called';
  SELECT array_agg(own.called ORDER BY own.place) INTO passed_on
    FROM unnest(fates, judge.called, limits_met) WITH ORDINALITY AS own (fate, called, met, place)
    WHERE own.fate <> 'taken' AND own.called IS DISTINCT FROM limits[own.met] AND own.called IS NOT NULL;
  IF passed_on IS NOT NULL THEN
    FOR next IN
      SELECT * FROM pass_on(passed_on, array_fill(now_ms, ARRAY[cardinality(passed_on)]), judge.most_calls::integer)
    LOOP
      calls := calls + (next.lane IS NOT NULL)::integer;
      lane := next.lane; due_at_ms := next.due_at_ms; job := next.job;
      RETURN NEXT;
    END LOOP;
  END IF;
  FOR number IN 1 .. cardinality(rings) LOOP
    refused := array_positions(limits_met, scopes + number);
    CONTINUE WHEN taken[scopes + number] = 0 AND cardinality(refused) = 0;
    FOR next IN
      SELECT * FROM call_into_window(limits[scopes + number], 0, NULL, true, judge.most_calls::integer - calls)
    LOOP
      calls := calls + (next.lane IS NOT NULL)::integer;
      lane := next.lane; due_at_ms := next.due_at_ms; job := next.job;
      RETURN NEXT;
    END LOOP;
    CONTINUE WHEN cardinality(refused) = 0;
    SELECT * INTO ring FROM rate_window WHERE rate_window.id = limits[scopes + number];
    ring.promised := greatest(ring.promised, ring.granted - ring.most);
    -- Where calls ran out before the line did, nobody may be promised what its heads have a right to.
    promises := CASE
      WHEN ring.has_line AND calls >= judge.most_calls THEN 0
      ELSE least(ring.granted - ring.promised, cardinality(refused))
    END;
    RETURN QUERY
      SELECT own.place, 'deferred', ring.id,
        greatest(leaves_ms(ring, ring.promised + own.turn - 1) - ring.shift_ms, now_ms + 250 + jitter_ms(judge.jobs[own.place])),
        NULL::integer, NULL::json, NULL::integer, NULL::uuid
      FROM unnest(refused) WITH ORDINALITY AS own (place, turn)
      WHERE own.turn <= promises
      UNION ALL
      SELECT own.place, 'parked', ring.id, NULL, NULL, NULL, NULL, NULL
      FROM unnest(refused) WITH ORDINALITY AS own (place, turn)
      WHERE own.turn > promises;
    UPDATE rate_window SET
      promised = ring.promised + promises,
      has_line = rate_window.has_line OR promises < cardinality(refused),
      heads = lowered(
        rate_window.heads,
        (SELECT array_agg(judge.ranks[own.place]) FROM unnest(refused[promises + 1 :]) AS own (place)),
        (SELECT array_agg(judge.jobs[own.place]) FROM unnest(refused[promises + 1 :]) AS own (place))
      )
      WHERE rate_window.id = ring.id;
  END LOOP;

  RETURN QUERY
    SELECT own.place::integer, own.fate, limits[own.met], NULL::bigint,
      own.held, own.fences, NULL::integer, NULL::uuid
    FROM unnest(fates, limits_met, held, fenced) WITH ORDINALITY AS own (fate, met, held, fences, place)
    WHERE own.fate <> 'refused';
  place := NULL; fate := stopped; due_at_ms := NULL; lane := NULL; job := NULL;
  IF stopped IS NOT NULL THEN
    RETURN NEXT;
  END IF;
END
$$;

-- Set right what a crash left behind in the lines of an application's limits, behind that id, at most so many: how many
-- hold a scope (if `counts`), and room that nobody was called for. Answers one row per limit: whether its count was wrong;
-- then whom it called, and whether it is idle.
CREATE FUNCTION tend(application integer, behind uuid, most_limits bigint, most_calls bigint, counts boolean)
RETURNS TABLE (at_limit uuid, mended boolean, lane integer, due_at_ms bigint, job uuid)
LANGUAGE plpgsql VOLATILE STRICT SET search_path FROM CURRENT
AS $$
DECLARE
  ids uuid[];
  own scope;
  ring rate_window;
  next record;
  count integer;
  calls integer := 0;
  now_ms bigint;
BEGIN
  SELECT array_agg(chosen.id ORDER BY chosen.id) INTO ids
    FROM (
      SELECT every.id
      FROM (
        (
          SELECT scope.id FROM scope
          WHERE scope.application = tend.application AND scope.has_line AND scope.id > tend.behind
          ORDER BY scope.id LIMIT tend.most_limits
        )
        UNION ALL
        (
          SELECT rate_window.id FROM rate_window
          WHERE rate_window.application = tend.application AND rate_window.has_line AND rate_window.id > tend.behind
          ORDER BY rate_window.id LIMIT tend.most_limits
        )
      ) AS every
      ORDER BY every.id
      LIMIT tend.most_limits
    ) AS chosen;
  PERFORM lock_limits(ids);
  now_ms := now_ms();
  FOREACH at_limit IN ARRAY coalesce(ids, '{}') LOOP
    SELECT * INTO own FROM scope WHERE scope.id = at_limit;
    mended := false;
    IF FOUND THEN
      count := own.in_use;
      IF tend.counts THEN
        DELETE FROM hold WHERE hold.scope = own.id AND (
          SELECT true FROM hot WHERE hot.job = hold.job AND hot.claim = hold.claim
        ) IS NULL;
        SELECT count(*) INTO count FROM hold WHERE hold.scope = own.id;
        mended := count <> own.in_use;
        UPDATE scope SET in_use = count WHERE scope.id = own.id AND mended;
      END IF;
    ELSE
      UPDATE rate_window SET shift_ms = greatest(rate_window.shift_ms, rate_window.last_ms - now_ms)
        WHERE rate_window.id = at_limit
        RETURNING * INTO ring;
      count := room(ring, now_ms + ring.shift_ms - 250, 128);
    END IF;
    lane := NULL; due_at_ms := NULL; job := NULL;
    RETURN NEXT;
    mended := NULL;
    FOR next IN
      SELECT place.* FROM call_into_scope(
        own.id, own.capacity - count, (tend.most_calls - calls)::integer
      ) AS place WHERE own.id IS NOT NULL
      UNION ALL
      SELECT place.* FROM call_into_window(
        at_limit, count, now_ms, true, (tend.most_calls - calls)::integer
      ) AS place WHERE own.id IS NULL
    LOOP
      calls := calls + (next.lane IS NOT NULL)::integer;
      lane := next.lane; due_at_ms := next.due_at_ms; job := next.job;
      RETURN NEXT;
    END LOOP;
  END LOOP;
END
$$;

-- A limit is idle and was owed so many calls: call these now, as far as there is room, and promise what is left to be
-- promised. Answers whom, and whether it is idle still.
CREATE FUNCTION call_again(limit_id uuid, owed integer, most_calls integer)
RETURNS TABLE (lane integer, due_at_ms bigint, job uuid) LANGUAGE plpgsql VOLATILE STRICT SET search_path FROM CURRENT
AS $$
DECLARE
  ring rate_window;
  now_ms bigint;
BEGIN
  PERFORM lock_limits(ARRAY[call_again.limit_id]);
  RETURN QUERY
    SELECT place.*
    FROM scope CROSS JOIN LATERAL call_into_scope(
      scope.id, least(call_again.owed, scope.capacity - scope.in_use), call_again.most_calls
    ) AS place
    WHERE scope.id = call_again.limit_id;
  now_ms := now_ms();
  UPDATE rate_window SET shift_ms = greatest(rate_window.shift_ms, rate_window.last_ms - now_ms)
    WHERE rate_window.id = call_again.limit_id
    RETURNING * INTO ring;
  IF FOUND THEN
    RETURN QUERY SELECT place.* FROM call_into_window(
      ring.id, room(ring, now_ms + ring.shift_ms, call_again.owed), now_ms, true, call_again.most_calls
    ) AS place;
  END IF;
END
$$;
