-- What a dispatch with uniqueness keys becomes; the table of cases stands in runwick/policy/uniqueness.py, whose
-- decisions these are. And what is kept of a dispatch that found a job: the answer to its operation, as long as it is
-- promised.
--
--   active key:  id -> number of the live job that has it
--   window key:  id -> job's id, fingerprint of its request, until when it is held (ms)
--   reused:      operation -> job's id, which key found it, whether retry settings differed, until when it is kept (ms)

local uniqueness = { CREATE = 1, REUSE = 2, CONFLICT = 3 }

-- Which key found the job; Python knows them by the same numbers.
local NONE, ACTIVE, WINDOW, ACTIVE_AND_WINDOW = 0, 1, 2, 3

-- Keys. ------------------------------------------------------------------------------------------------------------

local function active_holder(work, id)
  local number = redis.call('HGET', keys.active(work.p), id)
  local row = number and rows.live(work, tonumber(number))
  return row and { job = row.id, policy = row.policy } or false
end

local function window_holder(work, id)
  local text = redis.call('HGET', keys.unique(work.p), id)
  if not text then return false end
  local kept = cmsgpack.unpack(text)
  local row = work:find(kept[1])
  return { job = kept[1], fingerprint = kept[2], till = kept[3], policy = row and row.policy }
end

-- Give a window key to a job.
function uniqueness.link(work, item, job)
  local till = work.now_ms + item.window_ms
  work:put('HSET', keys.unique(work.p), { item.window, cmsgpack.pack({ job, item.fingerprint, till }) })
  work:put('ZADD', keys.unique_until(work.p), { till, item.window })
end

-- Deciding. --------------------------------------------------------------------------------------------------------

local function reuse(job, match, drift, links)
  return { what = uniqueness.REUSE, job = job, match = match, drift = drift, links = links }
end

local function conflict(code, job) return { what = uniqueness.CONFLICT, code = code, job = job } end

local function decide(item, holder, first, now_ms)
  if not first or first.till <= now_ms then
    if not holder then return { what = uniqueness.CREATE, job = item.id } end
    return reuse(holder.job, ACTIVE, holder.policy ~= item.policy, item.window ~= nil)
  end
  if first.fingerprint ~= item.fingerprint then return conflict('uniqueness_conflict', first.job) end
  if holder and holder.job ~= first.job then return conflict('uniqueness_composition_conflict', first.job) end
  local drift = first.policy ~= nil and first.policy ~= item.policy
  return reuse(first.job, holder and ACTIVE_AND_WINDOW or WINDOW, drift, false)
end

-- What becomes of each item, in order; each sees what those before it made. An item has id, policy, and for its keys
-- active, window, window_ms and fingerprint. Where `go_on` is not, the first conflict is the last answer.
function uniqueness.resolve(work, items, go_on)
  local live, held, answers = {}, {}, {}
  for i, item in ipairs(items) do
    local active, window = item.active, item.window
    if active and live[active] == nil then live[active] = active_holder(work, active) end
    if window and held[window] == nil then held[window] = window_holder(work, window) end
    local holder = active and live[active]
    local answer = decide(item, holder, window and held[window], work.now_ms)
    answers[i] = answer
    if answer.what == uniqueness.CONFLICT and not go_on then return answers, answer end
    local policy = item.policy
    if answer.what == uniqueness.CREATE and active then live[active] = { job = item.id, policy = policy } end
    if answer.links then policy = holder.policy end
    if window and (answer.what == uniqueness.CREATE or answer.links) then
      held[window] = {
        job = answer.job, policy = policy, fingerprint = item.fingerprint, till = work.now_ms + item.window_ms,
      }
    end
  end
  return answers, nil
end

-- Operations that found a job. -------------------------------------------------------------------------------------

-- The operation by which a job is created, where it is not another one: its id with the last bit turned over.
function uniqueness.operation_of(job)
  return string.sub(job, 1, 15) .. string.char(bit.bxor(string.byte(job, 16), 1))
end

-- Keep what an operation was answered that created nothing; the server itself forgets it when nobody is promised it.
function uniqueness.keep(work, operation, answer, till)
  local text = cmsgpack.pack({ answer.job, answer.match, answer.drift, till })
  work:run('SET', keys.reused(work.p, operation), text, 'PX', string.format('%d', till - work.now_ms + 1))
end

-- What it was answered: { job, match, drift }, or nil.
function uniqueness.kept(work, operation)
  local text = redis.call('GET', keys.reused(work.p, operation))
  if not text then return nil end
  local job, match, drift, till = unpack(cmsgpack.unpack(text))
  if till < work.now_ms then return nil end
  return { job = job, match = match, drift = drift }
end

-- An answer that names a job which was there, or for `NONE` one that was created; `place` is the input's.
function uniqueness.packed(place, answer)
  return pack.array(4) .. cmsgpack.pack(place) .. pack.bin(answer.job)
    .. cmsgpack.pack(answer.match or NONE, answer.drift or false)
end
