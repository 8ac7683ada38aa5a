-- One job as a Lua table, and how it lies in Redis.
--
--   live:   hot[number] = row       j:<id> = body 'L' number(5)
--   ended:  -                       j:<id> = size of body(4) body size of row(2) row(no id) attempts 'E' number(5)
--
-- What differs most stands at the end: Lua looks at a few bytes of a long text to tell it from others, and at the last.
-- The body is what Python packed at dispatch and what Lua never looks into. Fields of a row:
--   number id(16) kind lane tenant policy(numbers of names) bytes max apart(payload lies by itself) rides(payload comes
--   with a claim) created due expires lives state generation revision attempts executions unstarted crashes
--   code(number) cancel called(limit) line(limit) active(16) resources({key, id}) rates(ids) past(attempts that ended)
--   ended place operation(that created it, where its id does not tell)
--   lease = { attempt token worker till begun holds(ids) fences({id, value}) }
-- Times are milliseconds since the epoch.

local rows = {}

function rows.is_live(row) return row.state < SUCCEEDED end
function rows.waits(row) return row.state == PENDING or row.state == RETRYING end
function rows.is_leased(row) return row.state == RESERVED or row.state == RUNNING end
function rows.begun(row) return row.state == RUNNING end
function rows.cancel_stands(row) return row.lease ~= nil and row.cancel ~= nil end
function rows.has_expired(row, now_ms) return row.expires ~= nil and row.expires <= now_ms end
function rows.may_run_ahead(row) return row.max - row.executions >= 2 end

-- The state in which a job waits again: between two executions, or as if it had never been claimed.
function rows.waits_as(row) return row.executions > 0 and RETRYING or PENDING end

-- How it is known where it waits: by id, so that equals are in order.
function rows.member(row) return row.id .. string.format('%d', row.number) end
function rows.number_of(member) return tonumber(string.sub(member, 17)) end

-- Bodies. ----------------------------------------------------------------------------------------------------------

local LIVE, ENDED = 'L', 'E'
local ID_SIZE, END_SIZE = 16, 6

function rows.live_value(number, body) return body .. LIVE .. struct.pack('>I5', number) end

local function is_live(value) return string.sub(value, -END_SIZE, -END_SIZE) == LIVE end

function rows.body_of(value)
  if is_live(value) then return string.sub(value, 1, -END_SIZE - 1) end
  return string.sub(value, 5, 4 + struct.unpack('>I4', value))
end

local function unpack_ended(number, id, value)
  local at = 5 + struct.unpack('>I4', value)
  local length = struct.unpack('>I2', value, at)
  local row = layout.unpack(number, id .. string.sub(value, at + 2, at + 1 + length))
  row.history = layout.unpack_attempts(string.sub(value, at + 2 + length, -END_SIZE - 1))
  return row
end

-- `text`: the row, whose id is its key already; `attempts`: one behind the other.
local function ended_value(number, body, text, attempts)
  return struct.pack('>I4', #body) .. body .. struct.pack('>I2', #text - ID_SIZE) .. string.sub(text, ID_SIZE + 1)
    .. attempts .. ENDED .. struct.pack('>I5', number)
end

-- The same, of the value that it had while it lived. `text`: the row without its id; the rest: pieces of its attempt.
function rows.ended_again(live_value, text, a, b, c, d, e, f)
  return struct.pack('>I4', #live_value - END_SIZE) .. string.sub(live_value, 1, -END_SIZE - 1)
    .. struct.pack('>I2', #text) .. text .. a .. b .. c .. d .. e .. f .. ENDED .. string.sub(live_value, 1 - END_SIZE)
end

-- Loading. ---------------------------------------------------------------------------------------------------------

-- How it stands, as far as the indexes are concerned.
function rows.standing(row)
  return {
    state = row.state, due = row.due, line = row.line, called = row.called, expires = row.expires, cancel = row.cancel,
    till = row.lease and row.lease.till,
  }
end

-- The live row of a number, of its text.
function rows.adopt(work, number, text)
  local row = layout.unpack(number, text)
  row.was = rows.standing(row)
  row.text = text
  work.rows[number] = row
  return row
end

-- The live rows of these numbers, each once read; a number of no live job gives nil there.
function rows.load(work, numbers)
  local wanted = {}
  for _, number in ipairs(numbers) do
    if work.rows[number] == nil then
      work.rows[number] = false
      wanted[#wanted + 1] = string.format('%d', number)
    end
  end
  for from = 1, #wanted, 4000 do
    local to = math.min(from + 3999, #wanted)
    local texts = redis.call('HMGET', keys.hot(work.p), unpack(wanted, from, to))
    for i, text in ipairs(texts) do
      local number = tonumber(wanted[from + i - 1])
      if text then rows.adopt(work, number, text) end
    end
  end
end

-- The live row of a number, or nil.
function rows.live(work, number)
  if work.rows[number] == nil then rows.load(work, { number }) end
  local row = work.rows[number]
  return row and rows.is_live(row) and row or nil
end

-- The row of a job's id, live or ended, or nil; an ended one comes with its `history`.
function rows.find(work, id)
  local behind = redis.call('GETRANGE', keys.job(work.p, id), -END_SIZE, -1)
  if behind == '' then return nil end
  local number = struct.unpack('>I5', behind, 2)
  if work.rows[number] then return work.rows[number] end
  if is_live(behind) then return rows.live(work, number) end
  local row = unpack_ended(number, id, redis.call('GET', keys.job(work.p, id)))
  row.was = rows.standing(row)
  row.text = false  -- it is written again only when it lives again
  work.rows[number] = row
  return row
end

-- The job of a number, live or ended, or nil.
function rows.of_number(work, number)
  local row = rows.live(work, number)
  if row then return row end
  local id = roster.id(work, number)
  return id and rows.find(work, id)
end

-- Its attempts that have ended, oldest first, and this act's with them.
function rows.history(work, row)
  if not row.history then
    row.history = {}
    if (row.past or 0) > 0 then
      for i, text in ipairs(redis.call('LRANGE', keys.past(work.p, string.format('%d', row.number)), 0, -1)) do
        row.history[i] = layout.unpack_attempt(text)
      end
    end
  end
  return row.history
end

-- An attempt has ended.
function rows.record(work, row, attempt)
  row.past = (row.past or 0) + 1
  row.added = row.added or {}
  row.added[#row.added + 1] = layout.pack_attempt(attempt)
  if row.history then row.history[#row.history + 1] = attempt end
end

-- A new job. Its body is packed by Python.
function rows.create(work, row, body, payload)
  row.fresh = { body = body, payload = payload }
  work.rows[row.number] = row
  work.by_id[row.id] = row
  return row
end

-- Writing. ---------------------------------------------------------------------------------------------------------

local function write_live(work, row, hot)
  local number = string.format('%d', row.number)
  if row.fresh then
    work:put('MSET', nil, { keys.job(work.p, row.id), rows.live_value(row.number, row.fresh.body) })
    if row.fresh.payload then work:put('MSET', nil, { keys.payload(work.p, row.id), row.fresh.payload }) end
  elseif row.text == false then  -- it had ended and lives again
    local body = rows.body_of(redis.call('GET', keys.job(work.p, row.id)))
    work:put('MSET', nil, { keys.job(work.p, row.id), rows.live_value(row.number, body) })
    local past = {}
    for i, attempt in ipairs(row.history) do past[i] = layout.pack_attempt(attempt) end
    if #past > 0 then work:put('RPUSH', keys.past(work.p, number), past) end
    work:put('UNLINK', nil, { keys.result(work.p, row.id) })
  elseif row.added then
    work:put('RPUSH', keys.past(work.p, number), row.added)
  end
  local text = layout.pack(row)
  if text ~= row.text then hot[#hot + 1], hot[#hot + 2] = number, text end
end

local function write_ended(work, row, body)
  local number = string.format('%d', row.number)
  local before, attempts = (row.past or 0) - #(row.added or {}), {}
  if before > 0 then
    attempts = redis.call('LRANGE', keys.past(work.p, number), 0, -1)
    work:put('UNLINK', nil, { keys.past(work.p, number) })
  end
  for _, attempt in ipairs(row.added or {}) do attempts[#attempts + 1] = attempt end
  local value = ended_value(row.number, body, layout.pack(row), table.concat(attempts))
  work:put('MSET', nil, { keys.job(work.p, row.id), value })
  work:put('HDEL', keys.hot(work.p), { number })
  if row.output then work:put('MSET', nil, { keys.result(work.p, row.id), row.output }) end
end

function rows.commit(work)
  local hot, ended, ids = {}, {}, {}
  for _, row in pairs(work.rows) do
    if row and rows.is_live(row) then
      write_live(work, row, hot)
    elseif row and not (row.was and row.was.state >= SUCCEEDED) then
      ended[#ended + 1] = row
      ids[#ids + 1] = keys.job(work.p, row.id)
    end
  end
  if #hot > 0 then work:put('HSET', keys.hot(work.p), hot) end
  for from = 1, #ids, 4000 do
    for i, value in ipairs(redis.call('MGET', unpack(ids, from, math.min(from + 3999, #ids)))) do
      write_ended(work, ended[from + i - 1], rows.body_of(value))
    end
  end
end
