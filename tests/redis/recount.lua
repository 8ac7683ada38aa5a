-- Counts anew, for tests, all that acts derive from rows, and compares it with what they have written down. Nothing here
-- asks `indexes`, which is what is judged; only how a row lies in Redis is taken from the library.
--
-- arguments: application
-- answers:   sentences, one for each difference

local function hex(bytes)
  return (string.gsub(bytes, '[^%w:{}.-]', function(c) return string.format('%%%02x', string.byte(c)) end))
end

local function as_map(flat, value_of)
  local map = {}
  for i = 1, #flat, 2 do map[flat[i]] = value_of(flat[i + 1]) end
  return map
end

local function sorted_set(key) return as_map(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), tonumber) end
local function hash(key) return as_map(redis.call('HGETALL', key), tonumber) end
local function texts(key) return as_map(redis.call('HGETALL', key), tostring) end

-- What is counted: a map for each key, of members to scores or of fields to numbers.
local Count = {}
Count.__index = Count

function Count:is(key, member, value)
  self.expected[key] = self.expected[key] or {}
  self.expected[key][member] = value
end

function Count:add(key, field, by)
  self.expected[key] = self.expected[key] or {}
  self.expected[key][field] = (self.expected[key][field] or 0) + by
end

function Count:say(...) self.wrong[#self.wrong + 1] = string.format(...) end

-- Compare one key with what was counted for it.
function Count:compare(key, found)
  local expected = self.expected[key] or {}
  for member, value in pairs(expected) do
    if found[member] ~= value then
      self:say('%s has %s at %s, not at %s', hex(key), hex(member), tostring(found[member]), tostring(value))
    end
  end
  for member, value in pairs(found) do
    if expected[member] == nil and value ~= 0 then
      self:say('%s has %s at %s, which belongs to nobody', hex(key), hex(member), tostring(value))
    end
  end
end

-- Where a row must be found.
local function count_live(count, row)
  local p, number = count.p, string.format('%d', row.number)
  if row.lease then
    count:is(keys.leases(p), number, row.lease.till)
    count:add(keys.leased(p), row.lane .. ':' .. row.kind, 1)
    if row.cancel then count:is(keys.cancels(p), number, row.number) end
    for _, id in ipairs(row.lease.holds or {}) do count.holds[id] = (count.holds[id] or 0) + 1 end
  elseif row.line then
    count:is(keys.line(p, row.line, row.lane), row.id .. number, 0)
    count:is(keys.lined(p, row.lane, row.kind), number, row.due)
    count.lines[row.line] = count.lines[row.line] or {}
    count.lines[row.line][row.lane] = true
  else
    count:is(keys.lane(p, row.lane, row.kind), row.id .. number, row.due)
    if row.called or row.state == RETRYING then count:is(keys.postponed(p, row.lane, row.kind), number, row.due) end
  end
  if not row.lease and row.expires then count:is(keys.expiry(p), number, row.expires) end
  if row.state == RETRYING then count:is(keys.retrying(p), number, row.number) end
  if row.active then count:is(keys.active(p), row.active, row.number) end
  if (row.lease ~= nil) ~= (row.state == RESERVED or row.state == RUNNING) then
    count:say('job %s is in state %d, its lease says otherwise', number, row.state)
  end
  if redis.call('HEXISTS', keys.kinds(p), row.lane .. ':' .. row.kind) == 0 then
    count:say('lane %d does not know kind %d', row.lane, row.kind)
  end
end

local function count_roster(count, row)
  local entry = roster.of({ p = count.p }, row.number)
  if not entry or entry.id ~= row.id then
    count:say('the roster does not know job %d', row.number)
    return
  end
  local live = row.state < SUCCEEDED
  local state = live and 1 or row.state - SUCCEEDED + 2
  if entry.state ~= state or entry.lane ~= row.lane or entry.kind ~= row.kind
    or entry.code ~= (live and 0 or row.code or 0) then
    count:say('the roster has job %d in state %d with code %d', row.number, entry.state, entry.code)
  end
  count:add(keys.tally(count.p, row.lane, state), string.format('%d', math.floor((row.number - 1) / 512)), 1)
end

-- What lies beside a row.
local function check_belongings(count, row)
  local p, live = count.p, row.state < SUCCEEDED
  local past = redis.call('LLEN', keys.past(p, string.format('%d', row.number)))
  if past ~= (live and row.past or 0) then count:say('job %d has %d earlier attempts beside it', row.number, past) end
  if (redis.call('EXISTS', keys.payload(p, row.id)) == 1) ~= row.apart then
    count:say('job %d and its payload do not agree', row.number)
  end
  if live and redis.call('EXISTS', keys.result(p, row.id)) == 1 then
    count:say('job %d goes on and has a result', row.number)
  end
  if row.place then
    local ends = redis.call('XRANGE', keys.ends(p, row.state), row.place, row.place)
    local found = false
    for _, one in ipairs(ends) do found = found or tonumber(one[2][2]) == row.number end
    if not found then count:say('job %d is not among the ends of its state', row.number) end
  end
end

local function count_jobs(count, application)
  local p, live, total = count.p, 0, 0
  local work = new_work(p, application, read_meta(p), 0)
  for _, key in ipairs(redis.call('KEYS', keys.job(p, '*'))) do
    local row = rows.find(work, string.sub(key, #keys.job(p, '') + 1))
    total = total + 1
    if not row then
      count:say('%s has no row', hex(key))
    else
      count_roster(count, row)
      check_belongings(count, row)
      if row.state < SUCCEEDED then
        live = live + 1
        count_live(count, row)
      end
    end
  end
  local hot = redis.call('HLEN', keys.hot(p))
  if hot ~= live then count:say('there are %d rows of %d live jobs', hot, live) end
  if work.meta.jobs ~= total then count:say('%d jobs were numbered, %d are there', work.meta.jobs, total) end
end

local function count_limit(count, id, limit, of_kind)
  count:is(of_kind(count.p, limit.kind), id, 0)
  if limit.lined then count:is(keys.lined_limits(count.p), id, 0) end
  if limit.capacity and limit.used ~= (count.holds[id] or 0) then
    count:say('scope %s counts %d holds, there are %d', limit.key, limit.used, count.holds[id] or 0)
  end
  for lane in pairs(count.lines[id] or {}) do
    local known = false
    for _, each in ipairs(limit.lanes) do known = known or each == lane end
    if not limit.lined or not known then count:say('limit %s does not know of its line in lane %d', limit.key, lane) end
  end
end

local function count_limits(count, application)
  local work = new_work(count.p, application, read_meta(count.p), 0)
  for _, id in ipairs(redis.call('HKEYS', keys.scopes(count.p))) do
    count_limit(count, id, limits.scope(work, id), keys.scopes_of)
  end
  for _, id in ipairs(redis.call('HKEYS', keys.windows(count.p))) do
    count_limit(count, id, limits.window(work, id), keys.windows_of)
  end
  for id in pairs(count.lines) do
    if not limits.of(work, id) then count:say('jobs stand in the line of no limit %s', hex(id)) end
  end
end

local function compare_all(count)
  local p = count.p
  for _, key in ipairs({ keys.leases(p), keys.cancels(p), keys.expiry(p), keys.retrying(p), keys.lined_limits(p) }) do
    count:compare(key, sorted_set(key))
  end
  for _, key in ipairs({ keys.leased(p), keys.active(p) }) do count:compare(key, hash(key)) end
  local compared, patterns = {}, {
    [keys.lane(p, '*', '*')] = sorted_set, [keys.postponed(p, '*', '*')] = sorted_set,
    [keys.lined(p, '*', '*')] = sorted_set, [keys.line(p, '*', '')] = sorted_set,
    [keys.scopes_of(p, '*')] = sorted_set, [keys.windows_of(p, '*')] = sorted_set, [keys.tally(p, '*', '*')] = hash,
  }
  for pattern, read in pairs(patterns) do
    for _, key in ipairs(redis.call('KEYS', pattern)) do
      compared[key] = true
      count:compare(key, read(key))
    end
  end
  for key in pairs(count.expected) do
    if redis.call('EXISTS', key) == 0 then count:compare(key, {}) end
  end
end

local function compare_names(count)
  for _, class in ipairs({ 'L', 'K', 'T', 'C', 'P' }) do
    for id, text in pairs(texts(keys.texts(count.p, class))) do
      count:is(keys.ids(count.p, class), text, tonumber(id))
    end
    count:compare(keys.ids(count.p, class), hash(keys.ids(count.p, class)))
  end
  local kept = texts(keys.unique(count.p))
  for id, text in pairs(kept) do count:is(keys.unique_until(count.p), id, cmsgpack.unpack(text)[3]) end
  count:compare(keys.unique_until(count.p), sorted_set(keys.unique_until(count.p)))
end

operator('recount', {}, function(a)
  local count = setmetatable({ p = keys.prefix(a[1]), expected = {}, wrong = {}, holds = {}, lines = {} }, Count)
  count_jobs(count, a[1])
  count_limits(count, a[1])
  compare_all(count)
  compare_names(count)
  local items = {}
  for i, sentence in ipairs(count.wrong) do items[i] = cmsgpack.pack(sentence) end
  return pack.list(items)
end)
