-- The roster: one entry of 32 bytes for each job that was ever dispatched, by number, in blocks of 512. It tells who a
-- number is, and lists are read from it without touching a job.
--
--   id 16 | state 1 | lane 2 | kind 2 | tenant 3 | code 2 | created 6          state: 1 live, 2, 3, 4 as it ended
--
-- For each lane and state there is a tally: which blocks hold how many of such jobs.

local roster = { SIZE = 32, BLOCK = 512, LIVE = 1 }

local FORMAT = '>c16I1I2I2I3I2I6'
-- What changes when a job ends, state to code, and behind how many bytes it stands.
local CHANGING, CHANGING_AT = '>I1I2I2I3I2', 16
local CLOSE = 4  -- one of so many entries changes, or more: they are written together

function roster.block_of(number) return math.floor((number - 1) / roster.BLOCK) end
function roster.offset_of(number) return (number - 1) % roster.BLOCK * roster.SIZE end

-- The state there of a job's state: a live one's own lies in its row.
function roster.state_of(state) return state < SUCCEEDED and roster.LIVE or state - SUCCEEDED + 2 end

function roster.pack(row)
  local code = roster.state_of(row.state) == roster.LIVE and 0 or row.code or 0
  return struct.pack(
    FORMAT, row.id, roster.state_of(row.state), row.lane, row.kind, row.tenant or 0, code, row.created
  )
end

-- An entry of a block's text that begins at this offset, as a table.
function roster.entry(text, offset)
  local id, state, lane, kind, tenant, code, created = struct.unpack(FORMAT, text, offset + 1)
  return { id = id, state = state, lane = lane, kind = kind, tenant = tenant, code = code, created = created }
end

-- The entry of a number; nil for one that was never given.
function roster.of(work, number)
  local at = roster.offset_of(number)
  local key = keys.block(work.p, roster.block_of(number))
  local text = redis.call('GETRANGE', key, at, at + roster.SIZE - 1)
  if #text < roster.SIZE or string.byte(text, 17) == 0 then return nil end
  return roster.entry(text, 0)
end

function roster.id(work, number)
  local entry = roster.of(work, number)
  return entry and entry.id
end

local function count(work, lane, state, block, by)
  work.tallies = work.tallies or {}
  local tally = work.tallies[lane * 8 + state]
  if not tally then
    tally = { lane = lane, state = state, by = {} }
    work.tallies[lane * 8 + state] = tally
  end
  tally.by[block] = (tally.by[block] or 0) + by
end

-- What becomes of the entry of a job that ends, or lives again; one may stand for many that are alike. `was` and `now`:
-- states as the roster has them.
function roster.as_change(row, was, now, code)
  return {
    lane = row.lane, was = was, now = now,
    piece = struct.pack(CHANGING, now, row.lane, row.kind, row.tenant or 0, code or 0),
  }
end

function roster.change(work, number, change)
  work.changes[number] = change
  work.changed[#work.changed + 1] = number
end

-- Changes of one block, from place to place of the numbers: as one piece with what lies between, if they stand close.
local function write_block(work, block, from_place, to_place)
  local numbers, key = work.changed, keys.block(work.p, block)
  local first, last, count_of = numbers[from_place], numbers[to_place], to_place - from_place + 1
  if last - first >= CLOSE * count_of then
    for place = from_place, to_place do
      local number = numbers[place]
      work:run('SETRANGE', key, roster.offset_of(number) + CHANGING_AT, work.changes[number].piece)
    end
    return
  end
  local from = roster.offset_of(first) + CHANGING_AT
  local text = count_of > 1 and redis.call('GETRANGE', key, from, from + (last - first) * roster.SIZE)
  local pieces, n, done = {}, 0, 0
  for place = from_place, to_place do
    local number = numbers[place]
    local at, piece = (number - first) * roster.SIZE, work.changes[number].piece
    if at > done then
      n = n + 1
      pieces[n] = string.sub(text, done + 1, at)
    end
    n = n + 1
    pieces[n] = piece
    done = at + #piece
  end
  work:run('SETRANGE', key, from, table.concat(pieces))
end

local function write_changes(work)
  local numbers, from = work.changed, 1
  table.sort(numbers)
  for place = 1, #numbers do
    local block, change = roster.block_of(numbers[place]), work.changes[numbers[place]]
    count(work, change.lane, change.was, block, -1)
    count(work, change.lane, change.now, block, 1)
    if not numbers[place + 1] or roster.block_of(numbers[place + 1]) ~= block then
      write_block(work, block, from, place)
      from = place + 1
    end
  end
end

-- New jobs of one act follow each other, so their entries are written as one piece for each block.
local function write_new(work, fresh)
  table.sort(fresh, function(a, b) return a.number < b.number end)
  local first, piece
  local function write()
    if not first then return end
    local block, at = roster.block_of(first.number), roster.offset_of(first.number)
    local key = keys.block(work.p, block)
    -- At its full size from the beginning: a text that grows is given twice the room that it needs.
    if at == 0 then work:run('SETRANGE', key, roster.BLOCK * roster.SIZE - 1, '\0') end
    work:run('SETRANGE', key, at, table.concat(piece))
  end
  for _, row in ipairs(fresh) do
    if not first or roster.block_of(row.number) ~= roster.block_of(first.number) then
      write()
      first, piece = row, {}
    end
    piece[#piece + 1] = roster.pack(row)
  end
  write()
end

function roster.commit(work)
  local fresh = {}
  for _, row in pairs(work.rows) do
    if row then
      local now = roster.state_of(row.state)
      if row.fresh then
        fresh[#fresh + 1] = row
        count(work, row.lane, now, roster.block_of(row.number), 1)
      elseif roster.state_of(row.was.state) ~= now then
        local code = now ~= roster.LIVE and row.code or 0
        roster.change(work, row.number, roster.as_change(row, roster.state_of(row.was.state), now, code))
      end
    end
  end
  write_new(work, fresh)
  write_changes(work)
  for _, tally in pairs(work.tallies or {}) do
    local key = keys.tally(work.p, tally.lane, tally.state)
    for block, by in pairs(tally.by) do
      if by ~= 0 then work:count(key, block, by) end
    end
  end
end
