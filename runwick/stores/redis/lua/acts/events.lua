-- What was committed behind a place, in its order.
--
-- arguments: the place: a write, and how many of its events lie in front; how many events
-- answers:   { whether the store ever came that far, whether there may be more, events, the place behind them, legend }
-- event:     write, which of it, what, job, kind, lane, generation, at, attempt's number, how it ended (a number) or
--            which control it was, code, attempt, command; see Work:tell
-- reads:     meta, events, d, texts
-- writes:    nothing

local PIECE = 50

local function packed(work, legend, counter, index, at, event)
  local entry = roster.of(work, event[2])
  if not entry then return nil end
  local what, other = event[1], event[7] or nil
  return pack.array(13) .. cmsgpack.pack(counter, index, what) .. pack.bin(entry.id) .. cmsgpack.pack(
    legend:note('K', entry.kind), legend:note('L', entry.lane), event[3] or 1, at, event[4] or nil, event[5] or nil,
    legend:note('C', event[6] or nil)
  ) .. pack.bin(what == ATTEMPT_ENDED and other) .. pack.bin(what == CONTROLLED and other)
end

-- What one act told, job by job: jobs that were dispatched together are told together.
local function each(told)
  local group, within = 1, 0
  return function()
    local event = told[group]
    if not event then return nil end
    if event[1] ~= DISPATCHED then
      group = group + 1
      return event
    end
    local number = event[2] + within
    within = within + 1
    if within == event[3] then group, within = group + 1, 0 end
    return { DISPATCHED, number }
  end
end

act('events', {}, function(work, a)
  local place, limit, legend, items = a[1], a[2], names.legend(work), {}
  local seen = 0
  local function answer(is_known)
    return pack.array(5) .. cmsgpack.pack(is_known, seen == limit) .. pack.list(items) .. cmsgpack.pack(place)
      .. legend:packed()
  end
  if place[1] > work.meta.writes then return answer(false) end
  local from = place[1] .. '-0'
  while true do
    local piece = redis.call('XRANGE', keys.events(work.p), from, '+', 'COUNT', PIECE)
    for _, item in ipairs(piece) do
      local counter, index = tonumber(string.match(item[1], '^%d+')), 0
      local at_and_told = cmsgpack.unpack(item[2][2])
      for event in each(at_and_told[2]) do
        index = index + 1
        if counter > place[1] or index > place[2] then
          if seen == limit then return answer(true) end
          seen, place = seen + 1, { counter, index }
          items[#items + 1] = packed(work, legend, counter, index, at_and_told[1], event)
        end
      end
    end
    if #piece < PIECE then return answer(true) end
    from = '(' .. piece[#piece][1]
  end
end)
