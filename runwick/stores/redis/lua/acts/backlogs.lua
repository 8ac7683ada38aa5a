-- How far behind each lane is, counted without looking at jobs.
--
-- arguments: none
-- answers:   { lanes, legend }; of a lane { lane, due, later, standing in lines, leased, when its first job was due or
--            nil }
-- reads:     texts, kinds, w, b, leased
-- writes:    nothing

local function waiting_in(work, lane, leased)
  local due, all, lined, held, first = 0, 0, 0, 0, nil
  local now = string.format('%d', work.now_ms)
  for kind in pairs(indexes.kinds(work, lane)) do
    local key = keys.lane(work.p, lane, kind)
    local head = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
    if head then
      due, all = due + redis.call('ZCOUNT', key, '-inf', now), all + redis.call('ZCARD', key)
      if head <= work.now_ms and (not first or head < first) then first = head end
    end
    lined = lined + redis.call('ZCARD', keys.lined(work.p, lane, kind))
    held = held + (leased[lane .. ':' .. kind] or 0)
  end
  return due, all - due, lined, held, first
end

act('backlogs', {}, function(work)
  local legend, items, leased = names.legend(work), {}, {}
  local all = redis.call('HGETALL', keys.leased(work.p))
  for i = 1, #all, 2 do leased[all[i]] = tonumber(all[i + 1]) end
  for lane in pairs(sight.queues(work)) do
    local due, later, lined, held, first = waiting_in(work, lane, leased)
    items[#items + 1] = pack.array(6) .. cmsgpack.pack(legend:note('L', lane), due, later, lined, held, first)
  end
  return pack.array(2) .. pack.list(items) .. legend:packed()
end)
