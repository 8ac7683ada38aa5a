-- What ends an attempt: its place in the history, and what becomes of its job.
--
-- A settlement is a table: way job delay begun detail output, and cpu, rss: what it cost, microseconds and bytes.
-- Its way says how, and many have the same:
--   token                               the claim's
--   outcome outcome_code state code     numbers of an outcome and of a state, texts of codes
--   instead                             { outcome, its code, the job's code } if a cancel is found to stand, or nil
--   barred                              the state of a job that does not allow the move, or nil

local ending = { CRASHED = 6, KEPT = 128 }

-- Whether a job that stands so may not be moved as the settlement says.
function ending.is_barred(row, s) return s.way.barred == row.state end

-- The way in which it is written: its own, unless a cancel stands and it says what that changes.
local function way_of(row, s)
  local instead = s.way.instead
  if not instead or not rows.cancel_stands(row) then return s.way end
  return { outcome = instead[1], outcome_code = instead[2], state = CANCELLED, code = instead[3] }
end

local function wait(work, row, way, delay)
  row.revision = row.revision + 1
  row.code = names.id(work, 'C', way.code)
  if delay then row.due = work.now_ms + delay end
  if row.expires and row.lives and (rows.begun(row) or delay) then
    -- A wait that was planned moves the expiry on, and so does a run: it was in time.
    row.expires = math.max(row.expires, work.now_ms + (delay or 0) + row.lives)
  end
  work:wait(row, rows.waits_as(row))
end

-- The costliest runs. ----------------------------------------------------------------------------------------------
--
-- Two sorted sets, by CPU time and by memory, keep the KEPT highest each. A member is packed for Python:
--   [attempt's id, job's id, kind's text, number, outcome, usage]            usage as it stands first in a detail

-- What a run must have cost to be kept; whatever it is while there is room. Read once for each act.
function ending.lowest(work, by)
  work.costs = work.costs or {}
  if not work.costs[by] then
    local kept = redis.call('ZRANGE', keys.costly(work.p, by), -ending.KEPT, -ending.KEPT, 'WITHSCORES')
    work.costs[by] = tonumber(kept[2]) or -1
  end
  return work.costs[by]
end

local function keep_cost(work, by, cost, member)
  if not cost or cost <= ending.lowest(work, by) then return end
  local key = keys.costly(work.p, by)
  work:put('ZADD', key, { cost, member })
  work.trims = work.trims or {}
  if not work.trims[by] then
    work.trims[by] = true
    work:run('ZREMRANGEBYRANK', key, 0, -ending.KEPT - 1)
  end
end

-- Keep such a run. `attempt`: its id; `number`: which one of the generation it was.
function ending.keep_costs(work, s, id, kind, attempt, number, outcome)
  local behind = cmsgpack.unpack_one(s.detail, 1)
  local member = pack.array(6) .. pack.bin(attempt) .. pack.bin(id) .. pack.bin(names.text(work, 'K', kind))
    .. cmsgpack.pack(number, outcome) .. string.sub(s.detail, 2, behind)
  keep_cost(work, 'cpu', s.cpu, member)
  keep_cost(work, 'rss', s.rss, member)
end

-- Ending. ----------------------------------------------------------------------------------------------------------

local function record(work, row, s, way)
  local attempt = {
    attempt = row.lease.attempt, generation = row.generation, number = row.attempts, outcome = way.outcome,
    code = names.id(work, 'C', way.outcome_code), begun = s.begun or row.lease.begun, ended = work.now_ms,
    delay = way.state == RETRYING and s.delay or nil, worker = row.lease.worker, detail = s.detail,
  }
  rows.record(work, row, attempt)
  if (s.cpu or -1) > ending.lowest(work, 'cpu') or (s.rss or -1) > ending.lowest(work, 'rss') then
    ending.keep_costs(work, s, row.id, row.kind, attempt.attempt, row.attempts, way.outcome)
  end
  work:tell({
    ATTEMPT_ENDED, row.number, row.generation, row.attempts, way.outcome, attempt.code or false, attempt.attempt,
  })
end

-- End the attempt that holds a job; answers whether a cancel stood.
function ending.finish(work, row, s)
  local way = way_of(row, s)
  record(work, row, s, way)
  if way.state ~= RETRYING then
    if way.state == SUCCEEDED then row.output = s.output end
    work:close(row, way.state, names.id(work, 'C', way.code))
  else
    if way.outcome == ending.CRASHED then row.crashes = row.crashes + 1 end
    if rows.begun(row) then row.unstarted = 0 end
    wait(work, row, way, s.delay)
  end
  return way ~= s.way
end

-- End an attempt that nobody keeps any more. One that never began leaves no trace and gives its number back.
function ending.abandon(work, row, s)
  local way = way_of(row, s)
  if rows.begun(row) then
    ending.finish(work, row, s)
  elseif way.state ~= RETRYING then
    work:close(row, way.state, names.id(work, 'C', way.code))
  else
    row.attempts = row.attempts - 1
    row.unstarted = row.unstarted + 1
    wait(work, row, way, s.delay)
  end
end

-- What Python packed (endings.py). ---------------------------------------------------------------------------------
--
--   ways     the ways in which they end, each once: { token, outcome, its code, state, its code, barred,
--            outcome if cancelled, its code, the job's code }
--   members  job, way, begun, delay, cpu, rss, detail, output; of all, one after the other
--   count    how many these are

local WIDTH = 8

function ending.unpack(told, members, count)
  local ways, settlements = {}, {}
  for i, way in ipairs(told) do
    ways[i] = {
      token = way[1], outcome = way[2], outcome_code = way[3], state = way[4], code = way[5], barred = way[6],
      instead = way[7] and { way[7], way[8], way[9] },
    }
  end
  for i = 1, count do
    local at = (i - 1) * WIDTH
    settlements[i] = {
      job = members[at + 1], way = ways[members[at + 2]], begun = members[at + 3], delay = members[at + 4],
      cpu = members[at + 5], rss = members[at + 6], detail = members[at + 7], output = members[at + 8],
    }
  end
  return settlements
end

-- The rows that they hold, false where one holds nothing; a job that comes twice is held the first time alone. `texts`:
-- by place, those that are held already.
function ending.held(work, settlements, texts)
  local numbers, held, seen = {}, {}, {}
  for i, s in ipairs(settlements) do
    local number = s.job % 2 ^ 40
    if texts[i] then seen[number] = true else numbers[#numbers + 1] = number end
  end
  rows.load(work, numbers)
  for i, s in ipairs(settlements) do
    local number = s.job % 2 ^ 40
    held[i] = not seen[number] and work:held(s.job, s.way.token) or false
    if held[i] then seen[number] = true end
  end
  return held
end
