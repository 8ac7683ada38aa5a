-- Which of a claim's candidates are taken, and which wait in the line of a limit; what that means and why it is so is
-- told in runwick/policy/admission.py, whose decisions these are. Candidates are asked for one by one, so that no more
-- is read than is judged.
--
--   candidate: bytes lone(may not run ahead) is_limited(it needs scopes or windows) expired
--              and where it is limited or has expired: row scopes(of its resources, queue and type, ascending)
--   turn:      most(may be taken) span(are judged, at most) judged taken moved

local admission = {}

local PASSED_MAX = 256

-- How many candidates of one turn are judged at most: what may be taken, and some that may have to be moved aside.
function admission.span(most, want, turns) return math.min(most, want) + math.floor(PASSED_MAX / math.max(1, turns)) end

local Judging = {}
Judging.__index = Judging

-- `asked`: want, free, room_bytes. The answer is filled in by `judge` and `settle`.
local function judging(work, asked)
  return setmetatable({
    work = work, asked = asked, moved = 0, ended = false, charged = {}, refused = {}, passed_on = {},
    taken = {}, expired = {}, parked = {}, deferred = {}, called = {}, stopped_at_lone = false,
  }, Judging)
end

local function full_scope(work, candidate)
  for _, id in ipairs(candidate.scopes) do
    local scope = limits.scope(work, id)
    if limits.room(scope) == 0 then return scope end
  end
  return nil
end

local function full_window(work, candidate)
  if not candidate.row.rates then return nil end
  for _, id in ipairs(candidate.row.rates) do
    local window = limits.window(work, id)
    if limits.vacant(work, window, limits.time(work, window), 1) == 0 then return window end
  end
  return nil
end

function Judging:park(row, limit)
  limit.lined = true
  self.parked[#self.parked + 1] = { row = row, limit = limit.id }
end

-- A job that was called in for another limit than `limit` leaves its place there.
function Judging:leave(row, limit)
  if row.called and row.called ~= limit then self.passed_on[#self.passed_on + 1] = row.called end
end

-- Scopes first: whom a scope keeps out uses up no promise; whom a window keeps out takes no place.
function Judging:kept_out(candidate)
  local row = candidate.row
  local full = full_scope(self.work, candidate)
  if full then
    self:park(row, full)
  else
    full = full_window(self.work, candidate)
    if not full then return false end
    self.refused[full.id] = self.refused[full.id] or {}
    table.insert(self.refused[full.id], row)
  end
  self:leave(row, full.id)
  return true
end

function Judging:hold(candidate)
  local work = self.work
  for _, id in ipairs(candidate.scopes) do
    local token = limits.take(limits.scope(work, id))
    if token then
      candidate.fences = candidate.fences or {}
      table.insert(candidate.fences, { id, token })
    end
  end
  for _, id in ipairs(candidate.row.rates or {}) do
    local window = limits.window(work, id)
    limits.grant(work, window, limits.time(work, window))
    self.charged[id] = true
  end
end

-- One after the other. `read(turn, left)` gives the next candidate of a turn, or nil; so many may still be taken.
function Judging:judge(turns, read)
  local asked, taken, finished, room_bytes = self.asked, 0, 0, self.asked.room_bytes
  for _, turn in ipairs(turns) do
    while turn.taken < turn.most do
      local left = asked.want - taken - finished
      if left <= 0 and self.moved == 0 then return end  -- nothing that follows changes the answer
      local candidate = turn.judged < turn.span and read(turn, left)
      if not candidate then break end
      turn.judged = turn.judged + 1
      if left <= 0 then
        self.ended = true
        return
      end
      if candidate.expired then
        self.expired[#self.expired + 1] = candidate.row
        turn.taken, finished = turn.taken + 1, finished + 1
        self:leave(candidate.row, nil)
      elseif candidate.is_limited and self:kept_out(candidate) then
        turn.moved, self.moved = turn.moved + 1, self.moved + 1
        if self.moved >= PASSED_MAX then return end
      else
        room_bytes = room_bytes - candidate.bytes
        self.stopped_at_lone = taken >= asked.free and candidate.lone
        self.ended = self.stopped_at_lone or (room_bytes < 0 and taken > 0)
        if self.ended then return end
        if candidate.is_limited then self:hold(candidate) end
        taken, turn.taken = taken + 1, turn.taken + 1
        self.taken[taken] = candidate
      end
    end
  end
end

-- Promise leavings: to the line's heads first, then to those that were refused now; the rest is parked.
function Judging:defer(window, calling)
  calling:promise(window)
  local cut_short = window.lined and calling:left() == 0
  for _, row in ipairs(self.refused[window.id] or {}) do
    if limits.unpromised(window) > 0 and not cut_short then
      local due = limits.promise(self.work, window, row.id)
      self.deferred[#self.deferred + 1] = { row = row, limit = window.id, due = due }
    else
      self:park(row, window)
    end
  end
end

-- Who is called for what was left, and what becomes of those that a window refused.
function Judging:settle()
  if #self.passed_on == 0 and not next(self.charged) and not next(self.refused) then return end
  local work, calling, windows = self.work, lines.calling(self.work), {}
  for _, id in ipairs(self.passed_on) do
    local limit = limits.of(work, id)
    if limit then calling:pass_on(limit, work.now_ms) end
  end
  for id in pairs(self.charged) do windows[#windows + 1] = id end
  for id in pairs(self.refused) do
    if not self.charged[id] then windows[#windows + 1] = id end
  end
  table.sort(windows, pack.precedes)
  for _, id in ipairs(windows) do self:defer(limits.window(work, id), calling) end
  self.called = calling.called
end

-- Whether a turn was judged as far as it goes at once, and gave less than it may for what was moved aside.
function Judging:again(turns)
  if self.ended then return false end
  if self.moved >= PASSED_MAX then return true end
  for _, turn in ipairs(turns) do
    if turn.judged >= turn.span and turn.moved > 0 and turn.taken < turn.most then return true end
  end
  return false
end

-- All of it.
function admission.admit(work, turns, read, asked)
  local admitted = judging(work, asked)
  admitted:judge(turns, read)
  admitted:settle()
  return admitted
end
