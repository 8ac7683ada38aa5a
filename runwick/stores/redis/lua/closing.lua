-- The short way of a success of plain jobs: those that run under the claim token, whose payload came along, with no
-- attempt behind them and nothing rare about them. Most jobs are plain and succeed. As in `plain`, what becomes of one
-- of a shape becomes of all of them that end in the same way, so the long way is gone once, in pieces.

local closing = {}

-- What is known of a shape by one of its leased rows: the row, lane and kind; or false where jobs of that shape are not
-- plain.
local function known(text)
  local row = layout.unpack(0, text)
  if row.state ~= RUNNING or not row.rides or row.past ~= 0 then return false end
  return { row = row, lane = row.lane, kind = row.kind, ways = {} }
end

local function candidate(work, text, number, expected)
  local id, before, due, behind, attempt, token, worker = layout.leased_pieces(text)
  if token ~= expected then return nil end
  local shape = work:shape(before, behind)
  if shape.running == nil then shape.running = known(text) end
  return shape.running and {
    shape = shape.running, text = text, number = number, id = id, due = due, attempt = attempt, worker = worker,
  } or nil
end

-- The jobs that go this way, by the place of their settlement; of one that comes twice the first counts.
function closing.find(work, settlements)
  local found, numbers, seen = {}, {}, {}
  for i, s in ipairs(settlements) do numbers[i] = string.format('%d', s.job % 2 ^ 40) end
  for from = 1, #numbers, 4000 do
    local texts = redis.call('HMGET', keys.hot(work.p), unpack(numbers, from, math.min(from + 3999, #numbers)))
    for i, text in ipairs(texts) do
      local place = from + i - 1
      local s = settlements[place]
      if text and s.way.state == SUCCEEDED and not seen[s.job] then
        found[place] = candidate(work, text, numbers[place], s.way.token)
      end
      seen[s.job] = true
    end
  end
  return found
end

-- What the long way makes of one job of a shape that ends in this way.
local function make(work, shape, way, attempt)
  local row = shape.row
  local code, outcome_code = names.id(work, 'C', way.code), names.id(work, 'C', way.outcome_code)
  local generation, number = row.generation, row.attempts
  local ended = layout.unpack(0, attempt.text)
  ended.state, ended.code, ended.revision, ended.past, ended.ended = SUCCEEDED, code, row.revision + 1, 1, work.now_ms
  ended.lease = nil
  local before, behind, rest = layout.alike(layout.pack(ended), false)
  return {
    number = number, before = before, behind = behind .. rest,
    change = roster.as_change(row, roster.LIVE, roster.state_of(SUCCEEDED), code),
    record = layout.attempt_pieces({
      generation = generation, number = number, outcome = way.outcome, code = outcome_code, ended = work.now_ms,
      worker = attempt.worker,
    }),
    -- Two events (see `Work:tell`) around the number, and in the first the attempt.
    told = {
      pack.array(7) .. cmsgpack.pack(ATTEMPT_ENDED),
      cmsgpack.pack(generation, number, way.outcome, outcome_code or false),
      pack.array(6) .. cmsgpack.pack(JOB_ENDED),
      cmsgpack.pack(generation, false, SUCCEEDED, code or false),
    },
    jobs = 0,
  }
end

local function bodies_of(work, found, places)
  local wanted = {}
  for i, place in ipairs(places) do wanted[i] = keys.job(work.p, found[place].id) end
  local values = {}
  for from = 1, #wanted, 4000 do
    for i, value in ipairs(redis.call('MGET', unpack(wanted, from, math.min(from + 3999, #wanted)))) do
      values[from + i - 1] = value
    end
  end
  return wanted, values
end

local function finish(work, s, one, key, value, writes)
  local shape, way = one.shape, s.way
  local made = shape.ways[way]
  if not made then
    made = make(work, shape, way, one)
    shape.ways[way] = made
    writes.made[#writes.made + 1] = { shape = shape, made = made }
  end
  local text = made.before .. one.due .. made.behind
  local n, number = #writes.jobs, one.number
  writes.jobs[n + 1] = key
  writes.jobs[n + 2] = rows.ended_again(value, text, layout.put_attempt(made.record, one.attempt, s.begun, s.detail))
  writes.numbers[#writes.numbers + 1] = number
  if s.output then
    writes.results[#writes.results + 1], writes.results[#writes.results + 2] = keys.result(work.p, one.id), s.output
  end
  made.jobs = made.jobs + 1
  roster.change(work, number + 0, made.change)
  if (s.cpu or -1) > writes.cpu or (s.rss or -1) > writes.rss then
    ending.keep_costs(work, s, one.id, shape.kind, one.attempt, made.number, way.outcome)
  end
  local told, packed_number = made.told, cmsgpack.pack(number + 0)
  local attempt_ended = told[1] .. packed_number .. told[2] .. cmsgpack.pack(one.attempt)
  work:tell_two(attempt_ended .. told[3] .. packed_number .. told[4])
end

-- End these jobs.
function closing.finish(work, settlements, found)
  local places = {}
  for i = 1, #settlements do
    if found[i] then places[#places + 1] = i end
  end
  if #places == 0 then return end
  local writes = {
    jobs = {}, results = {}, numbers = {}, made = {},
    cpu = ending.lowest(work, 'cpu'), rss = ending.lowest(work, 'rss'),
  }
  local job_keys, values = bodies_of(work, found, places)
  for i, place in ipairs(places) do
    finish(work, settlements[place], found[place], job_keys[i], values[i], writes)
  end
  work:put('MSET', nil, writes.jobs)
  work:put('MSET', nil, writes.results)
  work:put('HDEL', keys.hot(work.p), writes.numbers)
  work:put('ZREM', keys.leases(work.p), writes.numbers)
  for _, each in ipairs(writes.made) do
    work:count(keys.leased(work.p), each.shape.lane .. ':' .. each.shape.kind, -each.made.jobs)
  end
end
