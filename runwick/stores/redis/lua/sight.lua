-- What a list may show, told by a job's entry in the roster alone: what is asked for, and what whoever asks may see.
--
--   asked: queue, name of the type, tenant, code, created from, created until (ms), within; nil does not matter
--   within: nil for everything, else a list of { queues or nil, tenants or nil }; tenant false: jobs without one

local sight = {}

local function set_of(list)
  local set = {}
  for _, value in ipairs(list) do set[value] = true end
  return set
end

-- The numbers of the lanes of these queues (a set), as a set.
local function lanes_of(work, queues)
  local found = {}
  for id, queue in pairs(sight.queues(work)) do
    if queues[queue] then found[id] = true end
  end
  return found
end

local function kinds_of(work, name)
  local found, all = {}, redis.call('HGETALL', keys.texts(work.p, 'K'))
  for i = 1, #all, 2 do
    if string.match(all[i + 1], ':(.*)$', 17) == name then found[tonumber(all[i])] = true end
  end
  return found
end

local function tenants_of(work, tenants)
  local found = {}
  for _, tenant in ipairs(tenants) do
    local id = tenant and names.known(work, 'T', tenant) or not tenant and 0
    if id then found[id] = true end
  end
  return found
end

local function united(reaches, field)
  local all = {}
  for _, reach in ipairs(reaches) do
    if not reach[field] then return nil end
    for id in pairs(reach[field]) do all[id] = true end
  end
  return all
end

-- Of some lanes (a set, or nil for all), those in which a job of these kinds ever waited.
local function lanes_with(work, kinds, lanes)
  local found = {}
  for lane in pairs(sight.queues(work)) do
    for kind in pairs(indexes.kinds(work, lane)) do
      if kinds[kind] and (not lanes or lanes[lane]) then found[lane] = true end
    end
  end
  return found
end

-- All lanes by their numbers, with their queues.
function sight.queues(work)
  if not work.lane_queues then
    work.lane_queues = {}
    local all = redis.call('HGETALL', keys.texts(work.p, 'L'))
    for i = 1, #all, 2 do work.lane_queues[tonumber(all[i])] = string.sub(all[i + 1], 18) end
  end
  return work.lane_queues
end

-- A filter of what is asked for. `lanes`, `kinds`: sets of numbers, or nil for all; `code`: its number, -1 for one that
-- no job has.
function sight.open(work, asked)
  local queue, name, tenant, code, within = asked[1], asked[2], asked[3], asked[4], asked[7]
  local seen = { from = asked[5], till = asked[6] }
  if queue then seen.lanes = lanes_of(work, { [queue] = true }) end
  if name then seen.kinds = kinds_of(work, name) end
  if tenant then seen.tenant = names.known(work, 'T', tenant) or -1 end
  if code then seen.code = names.known(work, 'C', code) or -1 end
  if within then
    seen.reaches = {}
    for i, reach in ipairs(within) do
      seen.reaches[i] = {
        lanes = reach[1] and lanes_of(work, set_of(reach[1])), tenants = reach[2] and tenants_of(work, reach[2]),
      }
    end
    local reached = united(seen.reaches, 'lanes')
    if reached and seen.lanes then
      for id in pairs(seen.lanes) do
        if not reached[id] then seen.lanes[id] = nil end
      end
    end
    seen.lanes = seen.lanes or reached
  end
  if seen.kinds then seen.lanes = lanes_with(work, seen.kinds, seen.lanes) end
  return seen
end

-- Whether nothing that is there can be among it.
function sight.is_empty(seen)
  return seen.lanes and not next(seen.lanes) or seen.kinds and not next(seen.kinds) or seen.tenant == -1 or false
end

-- Whether a job of this lane, kind and tenant (0: none) is among it.
function sight.covers(seen, lane, kind, tenant)
  if seen.lanes and not seen.lanes[lane] or seen.kinds and not seen.kinds[kind] then return false end
  if seen.tenant and seen.tenant ~= tenant then return false end
  if not seen.reaches then return true end
  for _, reach in ipairs(seen.reaches) do
    if (not reach.lanes or reach.lanes[lane]) and (not reach.tenants or reach.tenants[tenant]) then return true end
  end
  return false
end

-- Whether a job with this entry of the roster is among it; what a live one waits for is not known by it.
function sight.shows(seen, entry)
  if seen.from and entry.created < seen.from or seen.till and entry.created >= seen.till then return false end
  if seen.code and entry.state ~= roster.LIVE and entry.code ~= seen.code then return false end
  return sight.covers(seen, entry.lane, entry.kind, entry.tenant)
end
