-- The act under way: what it has read, what it has changed, and the one place where changes are written.
--
--   gate opens it ──▶ the act reads and changes rows, scopes, windows ──▶ commit: rows, roster, indexes, limits, events
--
-- Nothing is written before `commit`, so an act that refuses, or meets a fault, has changed nothing.

local Work = {}
Work.__index = Work

local MANY = 16

-- What happens to jobs, by number; Python knows them by the same ones.
local DISPATCHED, ATTEMPT_ENDED, JOB_ENDED, CONTROLLED = 0, 1, 2, 3

local function new_work(p, application, meta, now_ms)
  return setmetatable({
    p = p, application = application, meta = meta, now_ms = now_ms,
    rows = {}, by_id = {}, scopes = {}, windows = {}, queues = {},
    ids = { L = {}, K = {}, T = {}, C = {}, P = {} }, texts = { L = {}, K = {}, T = {}, C = {}, P = {} },
    names_made = {}, freed = {}, left = {}, events = {}, audits = 0, wanted = {}, made_due = false,
    puts = {}, order = {}, set_keys = {}, shapes = {}, changes = {}, changed = {}, told_more = 0, runs = {},
    counts = {}, dirty = {},
  }, Work)
end

-- Collecting what is to be written. --------------------------------------------------------------------------------

-- The arguments of one command that is to be written, to add to; there is one for each kind and key. A key of nil
-- stands for commands that name their own.
function Work:list(command, key)
  local of_command = self.puts[command]
  if not of_command then
    of_command = {}
    self.puts[command] = of_command
  end
  local list = of_command[key or '']
  if not list then
    list = { command = command, key = key, many = nil }
    of_command[key or ''] = list
    self.order[#self.order + 1] = list
  end
  return list
end

-- Many members are not copied; they stay as they are until the act ends.
function Work:put(command, key, members)
  local list = self:list(command, key)
  if #members > MANY then
    list.many = list.many or {}
    list.many[#list.many + 1] = members
  else
    for _, member in ipairs(members) do list[#list + 1] = member end
  end
end

-- One command as it is.
function Work:run(...) self.runs[#self.runs + 1] = { ... } end

-- Add to a number of a hash.
function Work:count(key, field, by)
  local fields = self.counts[key] or {}
  self.counts[key] = fields
  fields[field] = (fields[field] or 0) + by
end

-- Set a field of the application's own record.
function Work:set(field, value)
  self.meta[field], self.dirty[field] = value, true
end

-- Refuse the act. Nothing was written.
function Work:refuse(text) error({ refusal = text }) end

local APPLICATIONS_MAX = 8191  -- so that the outward number of a job is exact

-- What the act knows of jobs that are alike in these pieces (layout.lua): a table to fill.
function Work:shape(before, behind)
  local shapes = self.shapes[before]
  if not shapes then
    shapes = {}
    self.shapes[before] = shapes
  end
  local shape = shapes[behind]
  if not shape then
    shape = { plain = nil, running = nil }
    shapes[behind] = shape
  end
  return shape
end

-- Applications and queues. -----------------------------------------------------------------------------------------

-- Make the application known; a new one is open and has the capabilities with which the store begins.
function Work:know()
  if self.meta.number then return end
  local number = redis.call('HGET', keys.applications, self.application)
  if not number then
    number = redis.call('HLEN', keys.applications) + 1
    if number > APPLICATIONS_MAX then self:refuse('RWFULL ' .. APPLICATIONS_MAX .. ' applications') end
    self:run('HSET', keys.applications, self.application, number)
  end
  self:set('number', tonumber(number))
  self:set('admission', 'open')
  self:set('capabilities', redis.call('HGET', keys.store, 'capabilities') or '')
end

-- The queue, as it stands; nil when nobody has registered or dispatched to it.
function Work:queue(name)
  if self.queues[name] == nil then
    local text = redis.call('HGET', keys.queues(self.p), name)
    self.queues[name] = text and cmsgpack.unpack(text) or false  -- { revision, since }
  end
  return self.queues[name] or nil
end

function Work:know_queue(name)
  if not self:queue(name) then self:set_queue(name, 0, false) end
end

-- `since`: since when it is paused, or false.
function Work:set_queue(name, revision, since)
  self.queues[name] = { revision, since }
  self:put('HSET', keys.queues(self.p), { name, cmsgpack.pack({ revision, since }) })
end

function Work:is_paused(name)
  local queue = self:queue(name)
  return queue ~= nil and queue[2] ~= false
end

-- The outward number of a job: unique within the store.
function Work:outward(number) return self.meta.number * 2 ^ 40 + number end

-- Jobs: the application's job of that id, live or ended; the one that a number holds by a claim token.
function Work:find(id)
  return self.by_id[id] or rows.find(self, id)
end

function Work:held(job, token)
  local row = rows.live(self, job % 2 ^ 40)
  if not row or not row.lease or row.lease.token ~= token then return nil end
  return row
end

-- Moving jobs. -----------------------------------------------------------------------------------------------------

-- What an attempt held is given back.
function Work:let_go(row)
  for _, id in ipairs(row.lease and row.lease.holds or {}) do self.freed[id] = (self.freed[id] or 0) + 1 end
  row.lease = nil
end

-- Put a job into its lane.
function Work:wait(row, state)
  row.state = state
  self:let_go(row)
  self.made_due = true
end

-- Move a job from its lane to a limit's line.
function Work:park(row, limit_id)
  row.line, row.called = limit_id, nil
  lines.join(limits.of(self, limit_id), row.lane)
end

-- Put a job where it stands in its lane, called in for or promised a place of a limit.
function Work:call(row, limit_id, due)
  row.line, row.called = nil, limit_id
  row.due = due or row.due
  self.made_due = true
end

function Work:take_calls(called)
  for _, call in ipairs(called) do self:call(call.row, call.limit, call.due) end
end

local function sorted_keys(t)
  local list = {}
  for key in pairs(t) do list[#list + 1] = key end
  table.sort(list, pack.precedes)
  return list
end

local CALLS_MAX = 1024  -- of one act

-- Do what was decided, and go on where that had to end. Nobody else is served meanwhile, so what is beyond CALLS_MAX is
-- left to who tends the lines.
function Work:take_all_calls(calling)
  self:take_calls(calling.called)
  local total = #calling.called
  while #calling.called > 0 and next(calling.owed) and total < CALLS_MAX do
    local owed = calling.owed
    calling = lines.calling(self, calling)
    for _, id in ipairs(sorted_keys(owed)) do calling:make_up(limits.of(self, id), owed[id]) end
    self:take_calls(calling.called)
    total = total + #calling.called
  end
  return total
end

-- Call others for what the act gave back: every act that ends or frees jobs comes here when it has.
function Work:call_in()
  if not next(self.freed) and #self.left == 0 then return end
  local calling = lines.calling(self)
  table.sort(self.left, function(a, b)
    if a[1] ~= b[1] then return pack.precedes(a[1], b[1]) end
    if a[2] ~= b[2] then return a[2] < b[2] end
    return pack.precedes(a[3], b[3])
  end)
  local scopes = {}
  for id in pairs(self.freed) do scopes[id] = true end
  for _, left in ipairs(self.left) do scopes[left[1]] = true end
  for _, id in ipairs(sorted_keys(scopes)) do
    local scope = limits.scope(self, id)
    if scope then
      if self.freed[id] then calling:into_scope(scope, limits.free(scope, self.freed[id])) end
      for _, left in ipairs(self.left) do
        if left[1] == id then calling:pass_on(scope, self.now_ms) end
      end
    end
  end
  for _, left in ipairs(self.left) do
    local window = limits.window(self, left[1])
    if window then calling:pass_on(window, left[2]) end
  end
  self.freed, self.left = {}, {}
  self:take_all_calls(calling)
end

-- End a job's generation. What its attempt held, or what it was called in for, is given back.
function Work:close(row, state, code)
  if row.called then
    self.left[#self.left + 1] = { row.called, row.due, row.id }
    row.called = nil
  end
  self:let_go(row)
  row.line, row.state, row.code, row.ended = nil, state, code, self.now_ms
  row.revision = row.revision + 1
  self:tell({ JOB_ENDED, row.number, row.generation, false, state, code or false })
  if state ~= SUCCEEDED then
    row.place = self.meta.writes + 1
    self.ends = self.ends or {}
    self.ends[#self.ends + 1] = row
  end
end

function Work:close_cancelled(row) self:close(row, CANCELLED, names.id(self, 'C', 'cancel_requested')) end
function Work:close_expired(row) self:close(row, FAILED, names.id(self, 'C', 'expired')) end

-- Open a job's next generation, with nothing counted.
function Work:reopen(row)
  row.generation, row.revision = row.generation + 1, row.revision + 1
  row.attempts, row.executions, row.unstarted, row.crashes = 0, 0, 0, 0
  row.code, row.cancel, row.ended, row.place = nil, nil, nil, nil
  row.due = self.now_ms
  row.expires = row.lives and self.now_ms + row.lives or nil
  self:wait(row, PENDING)
end

-- What happened: { what, number, generation, attempt's number, state or outcome or action, code, id of the attempt or
-- of the command }, false for what there is not; { DISPATCHED, first number, count } for jobs that follow each other.
function Work:tell(event) self.events[#self.events + 1] = cmsgpack.pack(event) end

-- Two events that are packed already, one behind the other.
function Work:tell_two(text)
  self.events[#self.events + 1] = text
  self.told_more = self.told_more + 1
end

-- One row of the audit trail, packed by `trail`; answers its id.
function Work:audit(record, number)
  self.audits = self.audits + 1
  local id = string.format('%d-%d', self.meta.writes + 1, self.audits)
  self:run('XADD', keys.audit(self.p), id, 'a', cmsgpack.pack(record))
  if number then self:put('RPUSH', keys.audited(self.p, string.format('%d', number)), { id }) end
  return id
end

-- Writing. ---------------------------------------------------------------------------------------------------------

local ARGUMENTS = 4000  -- of one command, so that Lua's stack holds them; even, for pairs

local function write(command, key, members)
  for from = 1, #members, ARGUMENTS do
    local to = math.min(from + ARGUMENTS - 1, #members)
    if key then
      redis.call(command, key, unpack(members, from, to))
    else
      redis.call(command, unpack(members, from, to))
    end
  end
end

local function write_puts(work)
  for _, list in ipairs(work.order) do
    for _, members in ipairs(list.many or {}) do write(list.command, list.key, members) end
    write(list.command, list.key, list)
  end
end

-- A count of nothing is not kept: the blocks of the roster are many.
local function write_counts(work)
  for key, fields in pairs(work.counts) do
    for field, by in pairs(fields) do
      if by ~= 0 and redis.call('HINCRBY', key, field, by) == 0 then redis.call('HDEL', key, field) end
    end
  end
end

local function write_ends(work)
  for i, row in ipairs(work.ends or {}) do
    local id = string.format('%d-%d', work.meta.writes + 1, i)
    work:run('XADD', keys.ends(work.p, row.state), id, 'n', string.format('%d', row.number))
  end
end

local function write_meta(work)
  local fields = { 'writes', work.meta.writes, 'at', work.now_ms }
  for field in pairs(work.dirty) do
    fields[#fields + 1], fields[#fields + 2] = field, work.meta[field]
  end
  redis.call('HSET', keys.meta(work.p), unpack(fields))
end

function Work:packed_events()
  local count = #self.events + self.told_more
  return pack.array(2) .. cmsgpack.pack(self.now_ms) .. pack.array(count) .. table.concat(self.events)
end

-- Write all that has changed, and tell who may want to know. An act that changed nothing writes nothing.
function Work:commit()
  rows.commit(self)
  roster.commit(self)
  indexes.commit(self)
  limits.commit(self)
  names.commit(self)
  write_ends(self)
  if #self.events > 0 then
    local id = string.format('%d-0', self.meta.writes + 1)
    self:run('XADD', keys.events(self.p), id, 'e', self:packed_events())
  end
  if #self.order == 0 and #self.runs == 0 and not next(self.dirty) then return end
  self.meta.writes = self.meta.writes + 1
  write_puts(self)
  write_counts(self)
  for _, command in ipairs(self.runs) do redis.call(unpack(command)) end
  write_meta(self)
  if self.made_due then redis.call('PUBLISH', keys.work, self.application) end
  for worker in pairs(self.wanted) do redis.call('PUBLISH', keys.asked, self.application .. '\0' .. worker) end
end
