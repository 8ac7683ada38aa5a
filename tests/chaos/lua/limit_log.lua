-- The log of limits and keys, and of claims: each act's part of it is written in the commit of what it tells. What an act
-- has changed is seen by comparing its rows as they were read with the rows as they are about to be written.
--
--   chaos:log  stream, one entry for each act: { time, changes { what, limit, job, value }, claims { attempt } }

function keys.chaos_log(p) return p .. 'chaos:log' end

local function holds_of(row)
  local holds, fences = {}, {}
  for _, fence in ipairs(row and row.lease and row.lease.fences or {}) do fences[fence[1]] = fence[2] end
  for _, id in ipairs(row and row.lease and row.lease.holds or {}) do
    holds[row.lease.attempt .. id] = { id, fences[id] or false }
  end
  return holds
end

-- One row's changes, by what they are.
local function note_row(notes, row)
  local was, is_live = row.text and layout.unpack(row.number, row.text) or nil, rows.is_live(row)
  local before, after = holds_of(was), holds_of(is_live and row or nil)
  for hold, of in pairs(before) do
    if not after[hold] then notes:add('free', of[1], row.id, false) end
  end
  for hold, of in pairs(after) do
    if not before[hold] then notes:add('take', of[1], row.id, of[2]) end
  end
  if was and not (is_live and row.generation == was.generation) then notes:add('over', false, row.id, false) end
  if is_live and not (was and row.generation == was.generation) then notes:add('live', false, row.id, false) end
  local called, earlier = is_live and row.called or nil, was and was.called
  if earlier and not called then notes:add('settled', earlier, row.id, false) end
  if called and (called ~= earlier or row.due ~= was.due) then notes:add('promise', called, row.id, row.due) end
  if row.lease and not (was and was.lease and was.lease.attempt == row.lease.attempt) then
    notes.claims[#notes.claims + 1] = row.lease.attempt
  end
end

-- A limit's: it keeps the text that it was read as.
local function note_scope(notes, scope)
  if not scope.text or cmsgpack.unpack(scope.text)[3] ~= scope.capacity then
    notes:add('capacity', scope.id, false, scope.capacity)
  end
end

local function note_window(notes, window)
  local granted = window.text and cmsgpack.unpack(window.text)[5] or 0
  for number = granted, window.granted - 1 do
    notes:add('grant', window.id, false, window.slots[number % window.most])
  end
end

local ORDER = { 'capacity', 'free', 'take', 'over', 'live', 'grant', 'settled', 'promise' }

local Notes = {}
Notes.__index = Notes

function Notes:add(what, limit, job, value)
  self[what][#self[what] + 1] = { what, limit, job, value }
end

-- In the order in which they can have happened; tokens of one scope as they were given.
function Notes:ordered()
  table.sort(self.take, function(a, b) return (a[4] or 0) < (b[4] or 0) end)
  local all = {}
  for _, what in ipairs(ORDER) do
    for _, change in ipairs(self[what]) do all[#all + 1] = change end
  end
  return all
end

local function note_all(work)
  local notes = setmetatable({ claims = work.claims_noted or {} }, Notes)
  for _, what in ipairs(ORDER) do notes[what] = {} end
  for _, row in pairs(work.rows) do
    if row then note_row(notes, row) end
  end
  for _, scope in pairs(work.scopes) do
    if scope then note_scope(notes, scope) end
  end
  for _, window in pairs(work.windows) do
    if window then note_window(notes, window) end
  end
  return notes:ordered(), notes.claims
end

local commit, lease = Work.commit, plain.lease

function Work:commit()
  local changes, claims = note_all(self)
  if #changes > 0 or #claims > 0 then
    local entry = cmsgpack.pack({ self.now_ms, changes, claims })
    self:run('XADD', keys.chaos_log(self.p), string.format('%d-0', self.meta.writes + 1), 'l', entry)
  end
  commit(self)
end

-- The short way of a claim is not seen in rows.
function plain.lease(work, candidates, legend, token, worker, till)
  work.claims_noted = work.claims_noted or {}
  for _, candidate in ipairs(candidates) do work.claims_noted[#work.claims_noted + 1] = candidate.attempt end
  lease(work, candidates, legend, token, worker, till)
end
