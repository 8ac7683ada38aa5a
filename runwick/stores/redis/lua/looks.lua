-- Stacks of running attempts that somebody wants to see. By attempt's id, as a packed list:
--
--   { job's number, claim token, worker, when it was asked for, text }        false while it is not answered

local looks = {}

local function find(work, attempt)
  local text = redis.call('HGET', keys.looks(work.p), attempt)
  return text and cmsgpack.unpack(text)
end

local function keep(work, attempt, look) work:put('HSET', keys.looks(work.p), { attempt, cmsgpack.pack(look) }) end

-- Ask for the stack of the attempt that holds a job.
function looks.ask(work, row)
  local lease = row.lease
  keep(work, lease.attempt, { row.number, lease.token, lease.worker, work.now_ms, false })
  work:put('ZADD', keys.looks_asked(work.p), { work.now_ms, lease.attempt })
  work.wanted[lease.worker] = true
end

-- Keep what a worker answers: attempt's id, text, of all. What nobody asked it for is left.
function looks.take_answers(work, worker, answers)
  work.looks_answered = {}
  for i = 1, #answers, 2 do
    local attempt = answers[i]
    local look = find(work, attempt)
    if look and look[3] == worker and not look[5] then
      look[5] = answers[i + 1]
      keep(work, attempt, look)
      work:put('ZREM', keys.looks_asked(work.p), { attempt })
      work.looks_answered[attempt] = true
    end
  end
end

-- The text that was answered, or nil. `number`: the job that the attempt must be of, or nil for any.
function looks.answer(work, attempt, number)
  local look = find(work, attempt)
  return look and (not number or look[1] == number) and look[5] or nil
end

-- What a worker is asked for since then and has not answered, as long as its attempt goes on; so many at most.
function looks.asked_of(work, worker, since_ms, most)
  local asked = {}
  local since = string.format('(%d', since_ms)
  for _, attempt in ipairs(redis.call('ZRANGE', keys.looks_asked(work.p), since, '+inf', 'BYSCORE')) do
    local look = not work.looks_answered[attempt] and find(work, attempt)
    local row = look and look[3] == worker and rows.live(work, look[1])
    if row and row.lease and row.lease.attempt == attempt and #asked < most then
      asked[#asked + 1] = pack.array(3) .. pack.bin(attempt) .. cmsgpack.pack(work:outward(row.number))
        .. pack.bin(look[2])
    end
  end
  return pack.list(asked)
end

-- Ask no longer for what was asked for until then.
function looks.forget(work, until_ms)
  work:run('ZREMRANGEBYSCORE', keys.looks_asked(work.p), '-inf', string.format('%d', until_ms))
end
