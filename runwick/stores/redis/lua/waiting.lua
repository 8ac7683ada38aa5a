-- The jobs that wait in one lane, in claim order: by due time, then by job id. Each kind waits in a set of its own, so
-- those that a worker cannot decode cost it nothing; what it can decode is merged here.

local waiting = {}

local PIECE_MIN = 2

-- The sets of a lane in which decodable jobs may wait. `kinds`: numbers of kinds, as a set.
function waiting.sets(work, lane, kinds)
  local sets = {}
  for kind in pairs(indexes.kinds(work, lane)) do
    if kinds[kind] then sets[#sets + 1] = { key = keys.lane(work.p, lane, kind), from = 0, at = 1, piece = {} } end
  end
  return sets
end

-- When the first job of these sets is due; nil when there is none.
function waiting.first_due(sets)
  local first
  for _, set in ipairs(sets) do
    local due = tonumber(redis.call('ZRANGE', set.key, 0, 0, 'WITHSCORES')[2])
    if due and (not first or due < first) then first = due end
  end
  return first
end

-- Go on to the next member of a set and its due time; answers whether there is one. They are read piece by piece.
local function advance(set, until_ms, count)
  if set.at > #set.piece then
    if set.is_over then return false end
    set.piece = redis.call('ZRANGE', set.key, '-inf', until_ms, 'BYSCORE', 'LIMIT', set.from, count, 'WITHSCORES')
    set.at, set.from = 1, set.from + #set.piece / 2
    set.is_over = #set.piece < 2 * count
    if #set.piece == 0 then return false end
  end
  set.member, set.due = set.piece[set.at], tonumber(set.piece[set.at + 1])
  set.at = set.at + 2
  return true
end

local function precedes(a, b)
  if a.due ~= b.due then return a.due < b.due end
  return pack.precedes(a.member, b.member)
end

-- Sets by their next members, as a heap: there may be a thousand kinds in a lane. Move one down to where it belongs.
local function sift(heap, at)
  local set, size = heap[at], #heap
  while 2 * at <= size do
    local below = 2 * at
    if below < size and precedes(heap[below + 1], heap[below]) then below = below + 1 end
    if not precedes(heap[below], set) then break end
    heap[at], at = heap[below], below
  end
  heap[at] = set
end

local function heap_of(sets, until_ms, count)
  local heap = {}
  for _, set in ipairs(sets) do
    if advance(set, until_ms, count) then heap[#heap + 1] = set end
  end
  for at = math.floor(#heap / 2), 1, -1 do sift(heap, at) end
  return heap
end

local function take_first(heap, until_ms, count)
  local set = heap[1]
  local member = set.member
  if not advance(set, until_ms, count) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if heap[1] then sift(heap, 1) end
  return member
end

local function take_from(set, until_ms, count)
  if set.is_over then return {} end
  local members = redis.call('ZRANGE', set.key, '-inf', until_ms, 'BYSCORE', 'LIMIT', set.from, count)
  set.from, set.is_over = set.from + #members, #members < count
  return members
end

-- The members of up to `count` further jobs of these sets that are due at `until_ms`. A job is given once.
function waiting.take(sets, until_ms, count)
  local members, limit = {}, string.format('%d', until_ms)
  if #sets == 1 then return take_from(sets[1], limit, count) end
  local piece = math.max(PIECE_MIN, math.ceil(count / math.max(1, #sets)))
  sets.heap = sets.heap or heap_of(sets, limit, piece)
  while #members < count and sets.heap[1] do members[#members + 1] = take_first(sets.heap, limit, piece) end
  return members
end
