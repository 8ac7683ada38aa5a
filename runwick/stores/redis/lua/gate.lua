-- The gate that every act passes, and how acts are made known to the server.
--
--   act('claim', { writes = true, new_work = true }, function(work, a) … return packed answer end)
--   operator('status', {}, function(a) … return packed answer end)        -- of the store itself; passes no gate
--
-- Flags: `writes`; `new_work`: only an open application takes it; `frees`: it runs although memory is full, for it ends
-- or gives back; `late`: the act asks `work:admit()` itself, once it knows that it was not applied before.

local REVISION = 1
local KNOWN = { scheduler = true, rate_admission = true }

-- Refusals begin with a word that Python knows.
local function check_store(expected)
  local found = redis.call('HMGET', keys.store, 'id', 'revision')
  if not found[1] then return 'RWNOSTORE -' end
  if tonumber(found[2]) ~= REVISION then return 'RWREVISION ' .. found[2] end
  if expected ~= '' and expected ~= found[1] then
    return 'RWIDENTITY ' .. string.gsub(found[1], '.', function(c) return string.format('%02x', string.byte(c)) end)
  end
  return nil
end

local META = { 'number', 'writes', 'at', 'jobs', 'recovery', 'admission', 'capabilities' }

local function read_meta(p)
  local meta = {}
  for i, text in ipairs(redis.call('HMGET', keys.meta(p), unpack(META))) do
    if text then meta[META[i]] = i <= 5 and tonumber(text) or text end
  end
  meta.writes, meta.at, meta.jobs = meta.writes or 0, meta.at or 0, meta.jobs or 0
  return meta
end

local function closed(meta, flags)
  if not meta.number or not flags.writes then return nil end
  if meta.admission == 'maintenance' or (meta.admission == 'drain' and flags.new_work) then
    return 'RWCLOSED ' .. meta.admission
  end
  if flags.new_work then
    for name in string.gmatch(meta.capabilities, '[^,]+') do
      if not KNOWN[name] then return 'RWCAPABILITY ' .. name end
    end
  end
  return nil
end

-- Go on only if the application may run the act now.
function Work:admit()
  local refusal = closed(self.meta, self.flags)
  if refusal then self:refuse(refusal) end
end

local function enter(p, expected, known, flags)
  local refusal = check_store(expected)
  if refusal then return nil, refusal end
  local meta = read_meta(p)
  if meta.writes < tonumber(known) then return nil, 'RWHISTORY ' .. string.format('%d', meta.writes) end
  local work = new_work(p, string.sub(p, 5, -3), meta, server_ms())
  work.flags = flags
  if not flags.late then refusal = closed(meta, flags) end
  return work, refusal
end

local function server_flags(flags)
  if not flags.writes then return { 'no-writes' } end
  return flags.frees and { 'allow-oom' } or {}
end

local function act(name, flags, body)
  local function answer(key_names, arguments)
    local work, refusal = enter(key_names[1], arguments[1], arguments[2], flags)
    if refusal then return redis.error_reply(refusal) end
    local went, packed = pcall(body, work, cmsgpack.unpack(arguments[3]))
    if not went then
      if type(packed) == 'table' and packed.refusal then return redis.error_reply(packed.refusal) end
      error(packed, 0)
    end
    if flags.writes then work:commit() end
    return pack.array(3) .. cmsgpack.pack(work.meta.writes, work.now_ms) .. packed
  end
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = answer, flags = server_flags(flags) })
end

local function operator(name, flags, body)
  local function answer(_, arguments) return body(cmsgpack.unpack(arguments[1])) end
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = answer, flags = server_flags(flags) })
end
