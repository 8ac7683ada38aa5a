-- What is left for a worker, counted without looking at jobs.
--
-- arguments: texts of lanes; texts of the kinds that it decodes
-- answers:   [due, later, leased, undecodable, postponed, for how long the one that waits longest has been due,
--            or nil, blocked, paused]
-- reads:     ids, kinds, queues, w, b, later, leased
-- writes:    nothing

local function known(work, class, texts)
  local ids = {}
  for _, text in ipairs(texts) do
    local id = names.known(work, class, text)
    if id then ids[id] = true end
  end
  return ids
end

local function earliest(key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) or math.huge
end

-- Jobs of a kind that it decodes. Whoever stands in a line was due before, unless the clock was set back since.
local function add(work, left, lane, kind)
  local waiting, lined = keys.lane(work.p, lane, kind), keys.lined(work.p, lane, kind)
  local now = string.format('%d', work.now_ms)
  local blocked = redis.call('ZCOUNT', lined, '-inf', now)
  left.due = left.due + redis.call('ZCOUNT', waiting, '-inf', now) + blocked
  left.blocked = left.blocked + blocked
  left.later = left.later + redis.call('ZCOUNT', waiting, '(' .. now, '+inf') + redis.call('ZCARD', lined) - blocked
  left.postponed = left.postponed + redis.call('ZCOUNT', keys.postponed(work.p, lane, kind), '(' .. now, '+inf')
  left.since = math.min(left.since, earliest(waiting), earliest(lined))
end

act('outlook', {}, function(work, a)
  local decodes, leased = known(work, 'K', a[2]), keys.leased(work.p)
  local left = {
    due = 0, later = 0, leased = 0, undecodable = 0, postponed = 0, since = math.huge, blocked = 0, paused = 0,
  }
  for lane in pairs(known(work, 'L', a[1])) do
    local is_paused = work:is_paused((names.lane(work, lane)))
    for kind in pairs(indexes.kinds(work, lane)) do
      if decodes[kind] then
        left.leased = left.leased + tonumber(redis.call('HGET', leased, lane .. ':' .. kind) or 0)
      end
      if decodes[kind] and not is_paused then
        add(work, left, lane, kind)
      else
        local count = redis.call('ZCARD', keys.lane(work.p, lane, kind))
          + redis.call('ZCARD', keys.lined(work.p, lane, kind))
        local where = is_paused and 'paused' or 'undecodable'
        left[where] = left[where] + count
      end
    end
  end
  local oldest = left.since <= work.now_ms and work.now_ms - left.since or nil
  return pack.array(8) .. cmsgpack.pack(
    left.due, left.later, left.leased, left.undecodable, left.postponed, oldest, left.blocked, left.paused
  )
end)
