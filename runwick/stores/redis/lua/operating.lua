-- What the functions of the store's operator share: how the store and its applications stand, and how that is answered.
--
--   answer: [store id or nil, revision or nil, applications, whether something was changed]
--   application: [name, admission, capabilities, leases, leases that have not run out, workers that live]
--
-- An operator belongs to no application, so no gate is before these functions. They change nothing in a store of
-- another revision, of which they tell no applications.

local operating = {}

local function names_in(list)
  local found = {}
  for name in string.gmatch(list or '', '[^,]+') do found[#found + 1] = name end
  table.sort(found, pack.precedes)
  return found
end

local function workers_alive(p, since_ms)
  local alive = 0
  for _, text in ipairs(redis.call('HVALS', keys.workers(p))) do
    if workers.is_seen_since(text, since_ms) then alive = alive + 1 end
  end
  return alive
end

local function application(name, alive_ms)
  local p = keys.prefix(name)
  local meta = redis.call('HMGET', keys.meta(p), 'admission', 'capabilities', 'at')
  local now_ms = math.max(server_ms(), tonumber(meta[3] or 0))
  return {
    name = name,
    p = p,
    admission = meta[1] or 'open',
    capabilities = names_in(meta[2]),
    leases = redis.call('ZCARD', keys.leases(p)),
    valid = redis.call('ZCOUNT', keys.leases(p), string.format('(%d', now_ms), '+inf'),
    workers = workers_alive(p, now_ms - alive_ms),
    now_ms = now_ms,
  }
end

-- The store and its applications by name; `alive_ms` after it was last seen, a worker counts no longer.
function operating.look(alive_ms)
  local is_there = redis.call('TYPE', keys.store).ok == 'hash'
  local store = is_there and redis.call('HMGET', keys.store, 'id', 'revision') or {}
  local found = { id = store[1], revision = tonumber(store[2] or ''), applications = {} }
  found.is_ours = found.revision == REVISION
  if found.is_ours then
    local known = redis.call('HKEYS', keys.applications)
    table.sort(known, pack.precedes)
    for i, name in ipairs(known) do found.applications[i] = application(name, alive_ms) end
  end
  return found
end

-- Those of that name, or all.
function operating.asked_for(found, name)
  local asked = {}
  for _, each in ipairs(found.applications) do
    if not name or each.name == name then asked[#asked + 1] = each end
  end
  return asked
end

-- The refusal where the operator may not do all that changes take to one of these; nil: go on.
function operating.forbidden(asked)
  for _, each in ipairs(asked) do
    local missing = permissions.missing(each.p)
    if missing then return redis.error_reply('NOPERM ' .. missing) end
  end
  return nil
end

-- What was found, as it was before anything was changed.
function operating.answer(found, is_changed)
  local items = {}
  for i, each in ipairs(found.applications) do
    local capabilities = {}
    for n, name in ipairs(each.capabilities) do capabilities[n] = cmsgpack.pack(name) end
    items[i] = pack.array(6) .. cmsgpack.pack(each.name, each.admission) .. pack.list(capabilities)
      .. cmsgpack.pack(each.leases, each.valid, each.workers)
  end
  return pack.array(4) .. pack.bin(found.id) .. cmsgpack.pack(found.revision) .. pack.list(items)
    .. cmsgpack.pack(is_changed or false)
end
