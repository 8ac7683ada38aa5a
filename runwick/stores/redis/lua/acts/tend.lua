-- Sets right what a crash left behind, limit by limit, and forgets what nobody needs any more.
--
-- arguments: the id behind which to go on, or nil; how many limits at most; how many uniqueness keys at most
-- answers:   [how many jobs were called, of how many scopes the count was wrong, the id to go on behind or nil]
-- reads:     lined:limits, leases, hot, scopes, windows, slots, line, queues, unique:until
-- writes:    scopes, windows, hot, w, line, lined, unique, unique:until

local COUNTED_MAX = 4000

-- How often each scope is held; nil where more are leased than can be counted while nobody else is served. An act
-- writes leases and counts at once, so there is hardly ever something to set right.
local function holds_of(work)
  local numbers, holds = redis.call('ZRANGE', keys.leases(work.p), 0, COUNTED_MAX), {}
  if #numbers > COUNTED_MAX then return nil end
  local texts = #numbers > 0 and redis.call('HMGET', keys.hot(work.p), unpack(numbers)) or {}
  for _, text in ipairs(texts) do
    for _, id in ipairs(text and layout.holds(text) or {}) do holds[id] = (holds[id] or 0) + 1 end
  end
  return holds
end

-- Uniqueness keys whose window is over.
local function forget(work, most)
  local now = string.format('%d', work.now_ms)
  local over = redis.call('ZRANGE', keys.unique_until(work.p), '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  if #over == 0 then return end
  work:put('HDEL', keys.unique(work.p), over)
  work:put('ZREM', keys.unique_until(work.p), over)
end

act('tend', { writes = true, frees = true }, function(work, a)
  local calling, mended = lines.calling(work), 0
  local chosen = limits.with_a_line(work, a[1], a[2])
  local holds, is_counted = nil, false
  for _, id in ipairs(chosen) do
    local limit = limits.of(work, id)
    if not limits.is_scope(limit) then
      calling:tend_window(limit)
    else
      if not is_counted then holds, is_counted = holds_of(work), true end
      if calling:tend_scope(limit, holds and (holds[id] or 0) or limit.used) then mended = mended + 1 end
    end
  end
  local called = #calling.called
  work:take_all_calls(calling)
  forget(work, a[3])
  local is_full = #chosen > 0 and #chosen == a[2]
  return pack.array(3) .. cmsgpack.pack(called, mended) .. pack.bin(is_full and chosen[#chosen] or nil)
end)
