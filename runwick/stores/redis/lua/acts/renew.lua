-- Renews what a worker holds, keeps what it tells about itself, and answers what it has to know. A lease that has run
-- out is never renewed or marked, even while nobody has taken its job yet.
--
-- arguments: worker; host, process, queues, executors, kinds or nil, activity or nil, see workers.lua; leases to renew:
--            job, token, of all; begun marks: job, token, milliseconds, of all; stacks that were asked for: attempt's
--            id, text, of all; how many milliseconds a lease lasts, lie between two recovery passes, somebody is asked
--            for a look, and a worker that was not seen is remembered; how many looks at most
-- answers:   [jobs whose lease is lost, whether to run the recovery pass, cancels: [job, token],
--            looks: [attempt's id, job, token]]
-- reads:     hot, cancels, workers, looks, looks:asked
-- writes:    hot, leases, workers, looks, looks:asked, meta

local PIECE = 4000

local function load(work, leases, marks)
  local numbers = {}
  for i = 1, #leases, 2 do numbers[#numbers + 1] = leases[i] % 2 ^ 40 end
  for i = 1, #marks, 3 do numbers[#numbers + 1] = marks[i] % 2 ^ 40 end
  rows.load(work, numbers)
end

local function valid(work, job, token)
  local row = work:held(job, token)
  return row and row.lease.till > work.now_ms and row.lease or nil
end

local function renew(work, leases, lease_ms)
  local lost = {}
  for i = 1, #leases, 2 do
    local lease = valid(work, leases[i], leases[i + 1])
    if lease then
      lease.till = work.now_ms + lease_ms
    else
      lost[#lost + 1] = leases[i]
    end
  end
  return lost
end

local function take_down(work, id, told)
  local worker = workers.find(work, id) or {}
  worker.host, worker.process, worker.queues, worker.executors = told[2], told[3], told[4], told[5]
  worker.kinds, worker.seen = told[6] or worker.kinds, work.now_ms
  if told[7] then worker.told, worker.activity = work.now_ms, told[7] end
  workers.keep(work, id, worker)
end

-- Let one worker per interval through; a time further away than the interval comes from a clock set back.
local function runs_the_pass(work, interval_ms)
  local at = work.meta.recovery or work.now_ms
  if work.now_ms < at and at <= work.now_ms + interval_ms then return false end
  work:set('recovery', work.now_ms + interval_ms)
  return true
end

-- What this worker was asked to cancel. Of the others' jobs no rows are made: there may be many.
local function cancels(work, worker)
  local numbers, asked = redis.call('ZRANGE', keys.cancels(work.p), 0, -1), {}
  for from = 1, #numbers, PIECE do
    local to = math.min(from + PIECE - 1, #numbers)
    for i, text in ipairs(redis.call('HMGET', keys.hot(work.p), unpack(numbers, from, to))) do
      if text and layout.worker(text) == worker then
        local job, lease = work:outward(tonumber(numbers[from + i - 1])), layout.unpack(0, text).lease
        asked[#asked + 1] = pack.array(2) .. cmsgpack.pack(job) .. pack.bin(lease.token)
      end
    end
  end
  return pack.list(asked)
end

act('renew', { writes = true, frees = true }, function(work, a)
  local worker, leases, marks = a[1], a[8], a[9]
  local lease_ms, interval_ms, look_lasts_ms, remembered_ms, looks_max = a[11], a[12], a[13], a[14], a[15]
  work:know()
  load(work, leases, marks)
  local lost = renew(work, leases, lease_ms)
  for i = 1, #marks, 3 do
    local lease = valid(work, marks[i], marks[i + 1])
    if lease then lease.begun = marks[i + 2] end
  end
  take_down(work, worker, a)
  looks.take_answers(work, worker, a[10])
  local is_due = runs_the_pass(work, interval_ms)
  if is_due then
    workers.forget(work, work.now_ms - remembered_ms)
    looks.forget(work, work.now_ms - look_lasts_ms)
  end
  return pack.array(4) .. cmsgpack.pack(lost, is_due) .. cancels(work, worker)
    .. looks.asked_of(work, worker, work.now_ms - look_lasts_ms, looks_max)
end)
