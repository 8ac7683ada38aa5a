-- Who works here, as it last said itself: one packed list for each worker, which Python reads as it is.
--
--   { host, process, queues, executors, kinds, seen, departed, told, activity }
--
-- Queues, kinds and what the executors do are JSON; times are milliseconds; false stands for what was never told.

local workers = {}

local FIELDS = { 'host', 'process', 'queues', 'executors', 'kinds', 'seen', 'departed', 'told', 'activity' }

local function unpacked(text)
  local values, worker = cmsgpack.unpack(text), {}
  for i, field in ipairs(FIELDS) do worker[field] = values[i] end
  return worker
end

-- The worker of that id, or nil.
function workers.find(work, id)
  local text = redis.call('HGET', keys.workers(work.p), id)
  return text and unpacked(text) or nil
end

function workers.keep(work, id, worker)
  local values = {}
  for i, field in ipairs(FIELDS) do values[i] = worker[field] or false end
  work:put('HSET', keys.workers(work.p), { id, cmsgpack.pack(values) })
end

-- End a presence, if there is one that goes on; the first end counts. `seen`: whether it says so itself.
function workers.depart(work, id, seen)
  local worker = workers.find(work, id)
  if not worker or worker.departed then return end
  worker.departed = work.now_ms
  if seen then worker.seen = work.now_ms end
  workers.keep(work, id, worker)
end

-- Whether a kept one goes on and was seen after a time.
function workers.is_seen_since(text, since_ms)
  local worker = unpacked(text)
  return not worker.departed and worker.seen > since_ms
end

-- Those that go on and were seen after a time.
function workers.alive(work, since_ms)
  local found = {}
  for _, text in ipairs(redis.call('HVALS', keys.workers(work.p))) do
    if workers.is_seen_since(text, since_ms) then found[#found + 1] = unpacked(text) end
  end
  return found
end

-- Forget those that were not seen after a time.
function workers.forget(work, since_ms)
  local all = redis.call('HGETALL', keys.workers(work.p))
  for i = 1, #all, 2 do
    if unpacked(all[i + 1]).seen <= since_ms then work:put('HDEL', keys.workers(work.p), { all[i] }) end
  end
end
