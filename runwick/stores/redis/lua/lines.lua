-- Who is called out of a limit's line, and when; why it is so is told in runwick/policy/lines.py, whose decisions these
-- are. A line is kept apart for each lane, so whoever waits in a paused queue hides nobody.

local lines = {}

local CALLED_MAX = 128
local RANKS = { 0, 1, 0, 2, 0, 1, 0, 0, 1, 0 }  -- high, medium, high, low, … : 6 : 3 : 1
local CHUNK = 128

-- A line as it stands now, for taking its jobs one by one, each once.
local function open(work, limit)
  local line = { limit = limit, lanes = {}, left = 0 }
  local kept = {}
  for _, lane in ipairs(limit.lanes) do
    local key = keys.line(work.p, limit.id, lane)
    local count = redis.call('ZCARD', key)
    if count > 0 then
      local queue, rank = names.lane(work, lane)
      kept[#kept + 1] = lane
      line.lanes[#line.lanes + 1] = {
        key = key, rank = rank, paused = work:is_paused(queue), from = 0, buffer = {}, at = 1,
      }
      line.left = line.left + count
    end
  end
  limit.lanes = kept
  return line
end

-- The next member of one lane's part whose job this act has not called yet, or nil.
local function head(work, line, lane)
  while true do
    local member = lane.buffer[lane.at]
    if not member then
      lane.buffer = redis.call('ZRANGE', lane.key, lane.from, lane.from + CHUNK - 1)
      lane.from, lane.at = lane.from + #lane.buffer, 1
      if #lane.buffer == 0 then return nil end
      local numbers = {}
      for i, each in ipairs(lane.buffer) do numbers[i] = rows.number_of(each) end
      rows.load(work, numbers)
    else
      local row = work.rows[rows.number_of(member)]
      if row and row.line == line.limit.id then return member, row end
      lane.at = lane.at + 1
      line.left = line.left - 1
    end
  end
end

-- The next job of a rank whose queue is not paused, or nil.
local function take(work, line, rank)
  local first, of, chosen
  for _, lane in ipairs(line.lanes) do
    if lane.rank == rank and not lane.paused then
      local member, row = head(work, line, lane)
      if member and (not first or pack.precedes(member, first)) then first, of, chosen = member, lane, row end
    end
  end
  if not first then return nil end
  of.at = of.at + 1
  line.left = line.left - 1
  return chosen
end

-- The calls of one act, CALLED_MAX of them at most.
local Calling = {}
Calling.__index = Calling

-- `before`: the calls after which these go on, in the same lines.
function lines.calling(work, before)
  return setmetatable({ work = work, open = before and before.open or {}, called = {}, owed = {} }, Calling)
end

function Calling:left() return CALLED_MAX - #self.called end

function Calling:owe(limit, count, promises)
  if (count > 0 or promises) and limit.lined and self:left() <= 0 then
    self.owed[limit.id] = (self.owed[limit.id] or 0) + count
  end
end

-- Call the next one; answers its row, or nil. `due`: its new due time, or nil.
function Calling:next(limit, due)
  if not limit.lined or self:left() <= 0 then return nil end
  local line = self.open[limit.id]
  if not line then
    line = open(self.work, limit)
    self.open[limit.id] = line
  end
  local turn = RANKS[limit.calls % #RANKS + 1]
  local row = take(self.work, line, turn)
  for rank = 0, 2 do
    if not row and rank ~= turn then row = take(self.work, line, rank) end
  end
  if line.left <= 0 then limit.lined = false end
  if not row then return nil end
  limit.calls = limit.calls + 1
  self.called[#self.called + 1] = { limit = limit.id, row = row, due = due }
  return row
end

-- Call up to `count` jobs of a scope's line, as many as places were freed.
function Calling:into_scope(scope, count)
  while count > 0 and self:next(scope, nil) do count = count - 1 end
  self:owe(scope, count)
end

-- Call up to `count` jobs of a window's line into room that it has; answers how many came.
function Calling:into_window(window, count, due)
  local came = 0
  while came < count and self:next(window, due) do came = came + 1 end
  self:owe(window, count - came)
  return came
end

-- Promise the leavings that nobody was promised to the heads of its line.
function Calling:promise(window)
  while limits.unpromised(window) > 0 do
    local row = self:next(window, self.work.now_ms)
    if not row then
      self:owe(window, 0, true)
      return
    end
    self.called[#self.called].due = limits.promise(self.work, window, row.id)
  end
end

-- One job that was called or promised a place goes elsewhere: the next one is called instead. `due`: when it was due.
function Calling:pass_on(limit, due)
  local work = self.work
  if limits.is_scope(limit) then
    self:into_scope(limit, math.min(1, limits.room(limit)))
  elseif due > work.now_ms or limits.vacant(work, limit, limits.time(work, limit), 1) > 0 then
    local came = self:into_window(limit, 1, math.max(due, work.now_ms))
    if came == 0 and (not limit.lined or (self:left() <= 0 and due > work.now_ms)) then limits.take_back(limit) end
  end
end

-- Call what an act before owed to this limit, as far as there is room now.
function Calling:make_up(limit, owed)
  local work = self.work
  if limits.is_scope(limit) then
    self:into_scope(limit, math.min(owed, limits.room(limit)))
  else
    self:into_window(limit, limits.vacant(work, limit, limits.time(work, limit), owed), work.now_ms)
    self:promise(limit)
  end
end

-- Set right what a crash left behind; answers whether the count of its holds was wrong.
function Calling:tend_scope(scope, holds)
  local mended = scope.used ~= holds
  scope.used = holds
  self:into_scope(scope, limits.room(scope))
  return mended
end

function Calling:tend_window(window)
  local work = self.work
  local unused = limits.vacant(work, window, limits.time(work, window), CALLED_MAX, limits.UNUSED_AFTER_MS)
  self:into_window(window, unused, work.now_ms)
  self:promise(window)
end

-- Somebody stands in a limit's line from now on.
function lines.join(limit, lane)
  limit.lined = true
  for _, known in ipairs(limit.lanes) do
    if known == lane then return end
  end
  limit.lanes[#limit.lanes + 1] = lane
end
