-- Commands as Python packed them (intake.py), and how one becomes a job.
--
--   tables: lanes and kinds, texts; retry settings, each { text, executions at most }; scopes and windows, as
--           limits.lua declares them. An item names what it needs of them by places, from 1.

local intake = {}

local function item_of(v)
  return {
    id = v[1], lane = v[2], kind = v[3], settings = v[4], bytes = v[5], deadline = v[6], body = v[7], tenant = v[8],
    operation = v[9], delay = v[10], not_before = v[11], expires_at = v[12], expires_in = v[13], payload = v[14],
    active = v[15], window = v[16], window_ms = v[17], fingerprint = v[18], scopes = v[19], rates = v[20],
    resources = v[21],
  }
end

-- The commands by names. `operation` is there only where the job's id does not tell it.
function intake.items(list)
  local items = {}
  for i, values in ipairs(list) do items[i] = item_of(values) end
  return items
end

function intake.tables(lanes, kinds, settings, scopes, windows)
  return { lanes = lanes, kinds = kinds, settings = settings, scopes = scopes, windows = windows }
end

function intake.operation_of(item) return item.operation or uniqueness.operation_of(item.id) end

-- Those at these places of a list.
local function of(list, places)
  local chosen = {}
  for i, place in ipairs(places or {}) do chosen[i] = list[place] end
  return chosen
end

local function ids_of(needs)
  local ids, seen = {}, {}
  for _, need in ipairs(needs) do
    if not seen[need[1]] then ids[#ids + 1] = need[1] end
    seen[need[1]] = true
  end
  table.sort(ids, pack.precedes)
  return #ids > 0 and ids or nil
end

-- A time in the past means now.
local function due(item, now_ms)
  if item.delay then return now_ms + item.delay end
  return math.max(now_ms, item.not_before or 0)
end

-- Make the job, and what it needs and is not there yet.
function intake.create(work, tables, item)
  local now_ms, settings, windows = work.now_ms, tables.settings[item.settings], of(tables.windows, item.rates)
  work:know()
  work:know_queue(string.sub(tables.lanes[item.lane], 18))
  limits.declare_scopes(work, of(tables.scopes, item.scopes))
  limits.declare_windows(work, windows)
  local number, expires = work.meta.jobs + 1, item.expires_in and now_ms + item.expires_in or item.expires_at
  work:set('jobs', number)
  local row = rows.create(work, {
    number = number, id = item.id, operation = item.operation, kind = names.id(work, 'K', tables.kinds[item.kind]),
    lane = names.id(work, 'L', tables.lanes[item.lane]), tenant = names.id(work, 'T', item.tenant),
    policy = names.id(work, 'P', settings[1]), max = settings[2], bytes = item.bytes, apart = item.payload ~= nil,
    rides = item.payload == nil or item.rates ~= nil, created = now_ms, due = due(item, now_ms), expires = expires,
    lives = expires and expires - now_ms, generation = 1, revision = 1, attempts = 0, executions = 0, unstarted = 0,
    crashes = 0, active = item.active, resources = item.resources, rates = ids_of(windows),
  }, item.body, item.payload)
  work:wait(row, PENDING)
end
