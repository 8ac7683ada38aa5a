-- Where a job stands in the sets by which it is found: derived from its row, as it was before the act and as it is now.
-- No act writes to one of these by itself, so none can forget one.

local indexes = {}

-- The scores of a row that stands so: in its lane, among those that stand in lines, among the postponed, the retrying,
-- the leased, and the cancels that stand; nil where it is not.
local function scores(row, stands)
  local state, due = stands.state, stands.due
  if state == PENDING or state == RETRYING then
    local retrying = state == RETRYING and row.number or nil
    if stands.line then return nil, due, nil, retrying, nil, nil end
    return due, nil, (retrying or stands.called) and due or nil, retrying, nil, nil
  elseif state == RESERVED or state == RUNNING then
    return nil, nil, nil, nil, stands.till, stands.cancel and row.number or nil
  end
  return nil, nil, nil, nil, nil, nil
end

-- The keys of a lane's and kind's own sets, made once for an act.
local function keys_of(work, lane, kind)
  local name = lane * 65536 + kind
  local found = work.set_keys[name]
  if not found then
    local p = work.p
    found = {
      lane = keys.lane(p, lane, kind), lined = keys.lined(p, lane, kind), postponed = keys.postponed(p, lane, kind),
      count = lane .. ':' .. kind,
    }
    work.set_keys[name] = found
  end
  return found
end

local function put(work, key, member, before, after)
  if before == after then return end
  local list = work:list(after and 'ZADD' or 'ZREM', key)
  if after then list[#list + 1] = after end
  list[#list + 1] = member
end

local function move_line(work, row, before, after)
  if before == after then return end
  local p, member = work.p, rows.member(row)
  if before then put(work, keys.line(p, before, row.lane), member, 0, nil) end
  if after then put(work, keys.line(p, after, row.lane), member, nil, 0) end
end

local function waits(stands) return stands.state == PENDING or stands.state == RETRYING end

local NOWHERE = {}

local function move(work, row)
  local was, is, number = row.was, rows.standing(row), string.format('%d', row.number)
  if row.fresh or not was then was = NOWHERE end
  local lane, lined, postponed, retrying, till, cancel = scores(row, was)
  local lane_now, lined_now, postponed_now, retrying_now, till_now, cancel_now = scores(row, is)
  local p, own = work.p, keys_of(work, row.lane, row.kind)
  if lane ~= lane_now then put(work, own.lane, row.id .. number, lane, lane_now) end
  if lined or lined_now then
    put(work, own.lined, number, lined, lined_now)
    move_line(work, row, lined and was.line, lined_now and is.line)
  end
  put(work, own.postponed, number, postponed, postponed_now)
  put(work, keys.retrying(p), number, retrying, retrying_now)
  put(work, keys.leases(p), number, till, till_now)
  put(work, keys.cancels(p), number, cancel, cancel_now)
  if was.expires or is.expires then
    put(work, keys.expiry(p), number, waits(was) and was.expires or nil, waits(is) and is.expires or nil)
  end
  if (till == nil) ~= (till_now == nil) then
    work:count(keys.leased(p), own.count, till_now and 1 or -1)
  end
end

-- Which kinds ever waited in a lane: claims look for those alone.
local function note_kinds(work, fresh)
  local seen = {}
  for _, row in ipairs(fresh) do
    local name = row.lane .. ':' .. row.kind
    if not seen[name] then
      seen[name] = true
      local kinds = indexes.kinds(work, row.lane)
      if not kinds[row.kind] then
        kinds[row.kind] = true
        work:put('HSET', keys.kinds(work.p), { name, 1 })
      end
    end
  end
end

-- The kinds that ever waited in a lane, as a set of numbers.
function indexes.kinds(work, lane)
  if not work.kinds then
    work.kinds = {}
    for _, name in ipairs(redis.call('HKEYS', keys.kinds(work.p))) do
      local of, kind = string.match(name, '^(%d+):(%d+)$')
      of = tonumber(of)
      work.kinds[of] = work.kinds[of] or {}
      work.kinds[of][tonumber(kind)] = true
    end
  end
  work.kinds[lane] = work.kinds[lane] or {}
  return work.kinds[lane]
end

local EQUALS_MAX = 1000

-- The numbers of a set up to that score, the lowest score first and equals by number; `limit` of them at most. Where
-- more than EQUALS_MAX are equal, no more than those are looked at, and any may be the first.
function indexes.up_to(key, score, limit)
  local found = redis.call('ZRANGE', key, '-inf', score, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  if #found == 0 then return {} end
  local last, scores, numbers = found[#found], {}, {}
  local function add(number, of)
    numbers[#numbers + 1] = number
    scores[number] = of
  end
  for i = 1, #found, 2 do
    if found[i + 1] ~= last then add(tonumber(found[i]), tonumber(found[i + 1])) end
  end
  local equals = redis.call('ZRANGE', key, last, last, 'BYSCORE', 'LIMIT', 0, math.max(limit, EQUALS_MAX))
  for _, number in ipairs(equals) do add(tonumber(number), tonumber(last)) end
  table.sort(numbers, function(a, b)
    if scores[a] ~= scores[b] then return scores[a] < scores[b] end
    return a < b
  end)
  for i = #numbers, limit + 1, -1 do numbers[i] = nil end
  return numbers
end

function indexes.commit(work)
  local fresh = {}
  for _, row in pairs(work.rows) do
    if row then
      if row.fresh then fresh[#fresh + 1] = row end
      move(work, row)
      local is_live, was_live = rows.is_live(row), row.was and row.was.state < SUCCEEDED and not row.fresh
      if row.active and is_live and not was_live then
        work:put('HSET', keys.active(work.p), { row.active, string.format('%d', row.number) })
      elseif row.active and was_live and not is_live then
        work:put('HDEL', keys.active(work.p), { row.active })
      end
    end
  end
  note_kinds(work, fresh)
end
