-- How a row lies in Redis, and an attempt that has ended: as short as can be, and quickly read.
--
--   row:      what every job has, in fixed places | so its lease, where it is leased | a packed list of what few have
--   attempt:  a packed list
--   an absent number is 0 in a fixed place, and false in a list, for lists have no holes

local layout = {}

local SIZE = 68  -- of a row that has neither a lease nor anything rare

-- id kind lane tenant policy bytes most flags created due state generation revision attempts executions unstarted
-- crashes code past
local FORMAT = '>c16I2I2I3I2I4I1I1I6I6I1I4I4I4I2I2I2I2I4'
-- attempt token worker till
local LEASE = '>c16c16c16I6'
local LEASE_SIZE = 54
local APART, RIDES, LEASED = 1, 2, 4

-- What few jobs have: nil for most.
local function rare_of(row, lease)
  if not (
    row.expires or row.lives or row.cancel or row.called or row.line or row.active or row.resources or row.rates
    or row.ended or row.place or row.operation or lease and (lease.begun or lease.holds or lease.fences)
  ) then return nil end
  lease = lease or {}
  local rare = {
    row.ended or false, row.place or false, row.expires or false, row.lives or false, row.cancel or false,
    row.called or false, row.line or false, row.active or false, row.resources or false, row.rates or false,
    row.operation or false, lease.begun or false, lease.holds or false, lease.fences or false,
  }
  for i = #rare, 1, -1 do
    if rare[i] then break end
    rare[i] = nil
  end
  return rare
end

local function set_rare(row, rare)
  row.ended, row.place, row.expires, row.lives = rare[1] or nil, rare[2] or nil, rare[3] or nil, rare[4] or nil
  row.cancel, row.called, row.line, row.active = rare[5] or nil, rare[6] or nil, rare[7] or nil, rare[8] or nil
  row.resources, row.rates, row.operation = rare[9] or nil, rare[10] or nil, rare[11] or nil
  local lease = row.lease
  if lease then lease.begun, lease.holds, lease.fences = rare[12] or nil, rare[13] or nil, rare[14] or nil end
end

function layout.pack(row)
  local lease = row.lease
  local rare = rare_of(row, lease)
  local flags = (row.apart and APART or 0) + (row.rides and RIDES or 0) + (lease and LEASED or 0)
  local text = struct.pack(
    FORMAT, row.id, row.kind, row.lane, row.tenant or 0, row.policy, row.bytes, row.max, flags, row.created, row.due,
    row.state, row.generation, row.revision, row.attempts, row.executions, row.unstarted, row.crashes, row.code or 0,
    row.past or 0
  )
  if lease then text = text .. struct.pack(LEASE, lease.attempt, lease.token, lease.worker, lease.till) end
  return rare and text .. cmsgpack.pack(rare) or text
end

local function absent(number) return number ~= 0 and number or nil end

function layout.unpack(number, text)
  local id, kind, lane, tenant, policy, bytes, max, flags, created, due, state, generation, revision, attempts,
    executions, unstarted, crashes, code, past, at = struct.unpack(FORMAT, text)
  local row = {
    number = number, id = id, kind = kind, lane = lane, tenant = absent(tenant), policy = policy, bytes = bytes,
    max = max, apart = flags % 2 == APART, rides = flags % 4 >= RIDES, created = created, due = due, state = state,
    generation = generation, revision = revision, attempts = attempts, executions = executions, unstarted = unstarted,
    crashes = crashes, code = absent(code), past = past, lease = nil, was = nil, text = text,
  }
  if flags >= LEASED then
    local attempt, token, worker, till, rest = struct.unpack(LEASE, text, at)
    row.lease, at = { attempt = attempt, token = token, worker = worker, till = till }, rest
  end
  if at <= #text then set_rare(row, cmsgpack.unpack(string.sub(text, at))) end
  return row
end

-- Of the text of a leased row: its worker, and the scopes that it holds, or nil.
function layout.worker(text) return string.sub(text, SIZE + 33, SIZE + 48) end

function layout.holds(text) return #text > SIZE + LEASE_SIZE and layout.unpack(0, text).lease.holds or nil end

-- A row in pieces: its id, its due time, and in front of that and behind it what it has alike with other jobs of its
-- *shape*; and its lease. What an act makes of one job of a shape it makes of all of them.
local PIECES, STATE_FROM = '>c16c21c6c25', 44
local LEASED_PIECES = PIECES .. 'c16c16c16'

function layout.state(text) return string.byte(text, STATE_FROM) end

-- Id, before due, due, behind due of one that waits and has nothing rare about it; nil of any other.
function layout.pieces(text)
  if #text ~= SIZE then return nil end
  return struct.unpack(PIECES, text)
end

-- The same and attempt, token, worker of one that is leased and has nothing rare about it; nil of any other.
function layout.leased_pieces(text)
  if #text ~= SIZE + LEASE_SIZE then return nil end
  return struct.unpack(LEASED_PIECES, text)
end

-- Of a row that is packed anew: what stands before its due time; behind that, up to the lease or to what is rare; and
-- the rest, which for a lease is without its attempt.
function layout.alike(text, is_leased)
  local rest = is_leased and SIZE + 17 or SIZE + 1
  return string.sub(text, 17, 37), string.sub(text, STATE_FROM, SIZE), string.sub(text, rest)
end

-- The begun mark is kept by how long before the end it was, which is a short number. It is by another clock.
local function before_end(attempt) return attempt.begun and attempt.ended - attempt.begun end

function layout.pack_attempt(attempt)
  return cmsgpack.pack({
    attempt.attempt, attempt.generation, attempt.number, attempt.outcome, attempt.code or false,
    before_end(attempt) or false, attempt.ended, attempt.delay or false, attempt.worker or false,
    attempt.detail or false,
  })
end

local function attempt_of(values)
  return {
    attempt = values[1], generation = values[2], number = values[3], outcome = values[4], code = values[5] or nil,
    begun = values[6] and values[7] - values[6] or nil, ended = values[7], delay = values[8] or nil,
    worker = values[9] or nil, detail = values[10] or nil,
  }
end

-- An attempt without a delay as pieces; and as those of one that differs in id, begun mark and detail alone.
function layout.attempt_pieces(attempt)
  return {
    pack.array(10), cmsgpack.pack(attempt.generation, attempt.number, attempt.outcome, attempt.code or false),
    cmsgpack.pack(attempt.ended, false, attempt.worker), ended = attempt.ended,
  }
end

function layout.put_attempt(pieces, id, begun, detail)
  local before = begun and pieces.ended - begun or false
  return pieces[1], cmsgpack.pack(id), pieces[2], cmsgpack.pack(before), pieces[3], cmsgpack.pack(detail or false)
end

function layout.unpack_attempt(text) return attempt_of(cmsgpack.unpack(text)) end

-- Attempts whose texts follow each other: one by one, for there may be more than Lua's stack holds.
function layout.unpack_attempts(text)
  local attempts, from, values = {}, 0, nil
  while from >= 0 and from < #text do
    from, values = cmsgpack.unpack_one(text, from)
    attempts[#attempts + 1] = attempt_of(values)
  end
  return attempts
end
