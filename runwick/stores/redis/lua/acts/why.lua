-- Why a job waits, all of one moment.
--
-- arguments: the job's id; how long after it was last seen a worker lives (ms); up to where jobs in front are counted
-- answers:   nil for no such job, else { state, now, its own reasons, reasons of limits, jobs in front of it in its
--            lane, kind (its text), queue, workers }, reasons in the order in which they are told
-- reason:    { code, until, scope, rate window, jobs in front }, nil for what is not known; see shown.lua
-- workers:   of those that live { queues, kinds } as they told them
-- reads:     j, hot, queues, scopes, windows, slots, w, line, kinds, workers, ids, texts
-- writes:    nothing

local function reason(code, more)
  more = more or {}
  return pack.array(5) .. cmsgpack.pack(code, more.till) .. (more.scope or pack.none) .. (more.rate or pack.none)
    .. cmsgpack.pack(more.ahead)
end

-- Of a lane, how many of one set stand in front of a job; of those due when it is, some are looked at.
local function in_front(key, row, most)
  local due, own = string.format('%d', row.due), rows.member(row)
  local count = redis.call('ZCOUNT', key, '-inf', '(' .. due)
  if count >= most then return most end
  for _, member in ipairs(redis.call('ZRANGE', key, due, due, 'BYSCORE', 'LIMIT', 0, most - count)) do
    if not pack.precedes(member, own) then break end
    count = count + 1
  end
  return count
end

local function ahead_in_lane(work, row, most)
  local count = 0
  for kind in pairs(indexes.kinds(work, row.lane)) do
    count = count + in_front(keys.lane(work.p, row.lane, kind), row, most)
  end
  return math.min(count, most)
end

-- Those of its own priority in front of it in its line.
local function ahead_in_line(work, limit, row, most)
  local _, rank = names.lane(work, row.lane)
  local count = 0
  for _, lane in ipairs(limit.lanes) do
    local _, other = names.lane(work, lane)
    if other == rank then
      count = count + redis.call('ZLEXCOUNT', keys.line(work.p, limit.id, lane), '-', '(' .. rows.member(row))
    end
  end
  return math.min(count, most)
end

local function own_reasons(work, row)
  local items = {}
  if row.due > work.now_ms and not (row.called and limits.window(work, row.called)) then
    items[#items + 1] = reason('not_due', { till = row.due })
  end
  if rows.has_expired(row, work.now_ms) then items[#items + 1] = reason('expired') end
  if work.meta.admission ~= 'open' then items[#items + 1] = reason('admission_closed') end
  if work:is_paused((names.lane(work, row.lane))) then items[#items + 1] = reason('queue_paused') end
  return items
end

-- The one in whose line it stands, and others that are full now.
local function full_scopes(work, row, items, most)
  for _, id in ipairs(limits.scopes_of(work, row)) do
    local scope, is_in_line = limits.scope(work, id), row.line == id
    if is_in_line or limits.room(scope) == 0 then
      items[#items + 1] = reason('scope_full', {
        scope = shown.scope(work, scope), ahead = is_in_line and ahead_in_line(work, scope, row, most) or nil,
      })
    end
  end
end

-- Alike; or the one that promised it a place, until that is due.
local function full_windows(work, row, items, most)
  for _, id in ipairs(row.rates or {}) do
    local window, is_in_line = limits.window(work, id), row.line == id
    local is_promised = row.called == id and row.due > work.now_ms
    if is_in_line or is_promised or shown.in_window(work, window) >= window.most then
      items[#items + 1] = reason('rate_full', {
        till = is_promised and row.due or nil, rate = shown.rate(work, window),
        ahead = is_in_line and ahead_in_line(work, window, row, most) or nil,
      })
    end
  end
end

-- Of those that live, whom they serve.
local function serving(work, alive_ms)
  local items = {}
  for i, worker in ipairs(workers.alive(work, work.now_ms - alive_ms)) do
    items[i] = pack.array(2) .. cmsgpack.pack(worker.queues, worker.kinds or nil)
  end
  return pack.list(items)
end

act('why', {}, function(work, a)
  local row = work:find(a[1])
  if not row then return pack.none end
  local own, of_limits, ahead = {}, {}, 0
  if rows.waits(row) then
    own = own_reasons(work, row)
    full_scopes(work, row, of_limits, a[3])
    full_windows(work, row, of_limits, a[3])
    ahead = ahead_in_lane(work, row, a[3])
  end
  return pack.array(8) .. cmsgpack.pack(row.state, work.now_ms) .. pack.list(own) .. pack.list(of_limits)
    .. cmsgpack.pack(ahead) .. pack.bin(names.text(work, 'K', row.kind)) .. cmsgpack.pack((names.lane(work, row.lane)))
    .. serving(work, a[2])
end)
