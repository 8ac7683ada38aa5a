-- Scopes and rate windows as an act reads, changes and writes them back; what they mean and why a window is a ring is
-- told in runwick/policy/limits.py, whose decisions these are.
--
--   scope:  kind key capacity used revision fence calls lined lanes
--   window: kind key most length granted promised shift last calls lined lanes      slots:<id>: slot -> time of a grant
--
-- `lined` says whether somebody stands in its line, `lanes` of which lanes those may be.

local limits = {}

local UNUSED_AFTER_MS, DEFER_MIN_MS, DEFER_JITTER_MS = 250, 250, 100
local SCOPE = { 'kind', 'key', 'capacity', 'used', 'revision', 'fence', 'calls', 'lined', 'lanes' }
local WINDOW = {
  'kind', 'key', 'most', 'length', 'granted', 'promised', 'shift', 'last', 'calls', 'lined', 'lanes',
}

local function packed(limit, fields)
  local values = {}
  for i, field in ipairs(fields) do values[i] = limit[field] end
  return cmsgpack.pack(values)
end

local function unpacked(id, text, fields)
  local limit, values = { id = id, text = text }, cmsgpack.unpack(text)
  for i, field in ipairs(fields) do limit[field] = values[i] end
  limit.was_lined = limit.lined
  return limit
end

local function fetch(work, cache, key, fields, ids)
  local wanted = {}
  for _, id in ipairs(ids) do
    if cache[id] == nil then
      cache[id] = false
      wanted[#wanted + 1] = id
    end
  end
  for from = 1, #wanted, 4000 do
    local to = math.min(from + 3999, #wanted)
    for i, text in ipairs(redis.call('HMGET', key, unpack(wanted, from, to))) do
      if text then cache[wanted[from + i - 1]] = unpacked(wanted[from + i - 1], text, fields) end
    end
  end
end

function limits.load_scopes(work, ids) fetch(work, work.scopes, keys.scopes(work.p), SCOPE, ids) end
function limits.load_windows(work, ids) fetch(work, work.windows, keys.windows(work.p), WINDOW, ids) end

-- The scope of that id, or nil; so the next.
function limits.scope(work, id)
  if work.scopes[id] == nil then limits.load_scopes(work, { id }) end
  return work.scopes[id] or nil
end

function limits.window(work, id)
  if work.windows[id] == nil then limits.load_windows(work, { id }) end
  return work.windows[id] or nil
end

-- Either.
function limits.of(work, id) return limits.scope(work, id) or limits.window(work, id) end

function limits.is_scope(limit) return limit.capacity ~= nil end

-- Ids of up to `count` limits with a line, ascending, from behind that one; a count of -1 means all.
function limits.with_a_line(work, after, count)
  local from = after and '(' .. after or '-'
  return redis.call('ZRANGE', keys.lined_limits(work.p), from, '+', 'BYLEX', 'LIMIT', 0, count)
end

-- Ids of up to `count` limits of one kind, ascending, from behind that one. `key`: of the kind's scopes or windows.
function limits.of_kind(work, key, after, count)
  return redis.call('ZRANGE', key, after and '(' .. after or '-', '+', 'BYLEX', 'LIMIT', 0, count)
end

-- Create those that are not there. Needs: { id, kind, key, capacity } and { id, kind, key, most, length }.
function limits.declare_scopes(work, needs)
  for _, need in ipairs(needs or {}) do
    if not limits.scope(work, need[1]) then
      work.scopes[need[1]] = {
        id = need[1], kind = need[2], key = need[3], capacity = need[4], used = 0, revision = 1, fence = 0, calls = 0,
        lined = false, lanes = {},
      }
    end
  end
end

function limits.declare_windows(work, needs)
  for _, need in ipairs(needs or {}) do
    if not limits.window(work, need[1]) then
      work.windows[need[1]] = {
        id = need[1], kind = need[2], key = need[3], most = need[4], length = need[5], granted = 0, promised = 0,
        shift = 0, last = 0, calls = 0, lined = false, lanes = {},
      }
    end
  end
end

-- The scopes that a job must hold to run, as the store has them now, ascending.
function limits.scopes_of(work, row)
  local found, seen = {}, {}
  local function take(id)
    if not seen[id] then
      seen[id] = true
      found[#found + 1] = id
    end
  end
  for _, resource in ipairs(row.resources or {}) do take(resource[2]) end
  local _, _, of_queue = names.lane(work, row.lane)
  local of_type = names.type_scope(work, row.kind)
  if limits.scope(work, of_queue) then take(of_queue) end
  if limits.scope(work, of_type) then take(of_type) end
  table.sort(found, pack.precedes)
  return found
end

-- Scopes. ----------------------------------------------------------------------------------------------------------

function limits.room(scope) return math.max(0, scope.capacity - scope.used) end

-- One place; answers the fencing token that goes with it, or nil.
function limits.take(scope)
  scope.used = scope.used + 1
  if scope.kind ~= 'resource' or scope.capacity ~= 1 then return nil end
  scope.fence = scope.fence + 1
  return scope.fence
end

-- Give places back; answers how many jobs of the line may be called for them.
function limits.free(scope, places)
  scope.used = scope.used - places
  return math.min(places, limits.room(scope))
end

-- Another capacity; answers how many jobs of the line may be called for it.
function limits.resize(scope, capacity)
  local grown = capacity - math.max(scope.capacity, scope.used)
  scope.capacity = capacity
  return math.max(0, grown)
end

-- Windows. ---------------------------------------------------------------------------------------------------------

-- Its own time, which never goes back: what the store's went back by is added from then on.
function limits.time(work, window)
  local time = work.now_ms + window.shift
  if time < window.last then
    window.shift = window.shift + window.last - time
    return window.last
  end
  return time
end

local function slot_of(work, window, number)
  window.slots = window.slots or {}
  local slot = number % window.most
  if window.slots[slot] == nil then
    local key = keys.slots(work.p, window.id)
    window.slots[slot] = tonumber(redis.call('HGET', key, string.format('%d', slot))) or false
  end
  return slot, window.slots[slot]
end

local function leaves(work, window, number)
  local _, at = slot_of(work, window, number)
  return at and at + window.length or 0
end

-- How many grants there is room for, up to `count`: those whose slot was left `unused` milliseconds ago or earlier.
function limits.vacant(work, window, time, count, unused)
  local free = 0
  while free < math.min(count, window.most) and leaves(work, window, window.granted + free) + (unused or 0) <= time do
    free = free + 1
  end
  return free
end

local function heed_promises(window) window.promised = math.max(window.promised, window.granted - window.most) end

-- Authorise one run; there must be room.
function limits.grant(work, window, time)
  local slot = slot_of(work, window, window.granted)
  window.slots[slot], window.last = time, time
  window.written = window.written or {}
  window.written[slot] = time
  window.granted = window.granted + 1
  heed_promises(window)
end

function limits.unpromised(window)
  heed_promises(window)
  return window.granted - window.promised
end

-- Promise a job the leaving of the first grant that nobody was promised; answers when it is due.
function limits.promise(work, window, id)
  heed_promises(window)
  local at = leaves(work, window, window.promised) - window.shift
  window.promised = window.promised + 1
  return math.max(at, work.now_ms + DEFER_MIN_MS + string.byte(id, 16) % (DEFER_JITTER_MS + 1))
end

-- A promise that its job will not use goes to the next one that is refused.
function limits.take_back(window)
  if limits.unpromised(window) < math.min(window.granted, window.most) then window.promised = window.promised - 1 end
end

limits.UNUSED_AFTER_MS = UNUSED_AFTER_MS

-- Writing. ---------------------------------------------------------------------------------------------------------

local function write(work, cache, key, fields, of_kind)
  for id, limit in pairs(cache) do
    if limit then
      local text = packed(limit, fields)
      if text ~= limit.text then work:put('HSET', key, { id, text }) end
      if not limit.text then work:put('ZADD', of_kind(work.p, limit.kind), { 0, id }) end
      if limit.lined and not limit.was_lined then
        work:put('ZADD', keys.lined_limits(work.p), { 0, id })
      elseif limit.was_lined and not limit.lined then
        work:put('ZREM', keys.lined_limits(work.p), { id })
      end
      for slot, time in pairs(limit.written or {}) do
        work:put('HSET', keys.slots(work.p, id), { string.format('%d', slot), string.format('%d', time) })
      end
    end
  end
end

function limits.commit(work)
  write(work, work.scopes, keys.scopes(work.p), SCOPE, keys.scopes_of)
  write(work, work.windows, keys.windows(work.p), WINDOW, keys.windows_of)
end
