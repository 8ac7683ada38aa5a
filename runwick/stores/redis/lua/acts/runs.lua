-- Attempts that ended last, the latest first, as far back as one call looks.
--
-- arguments: the place before which it looks, or nil; how many; what is asked for, see sight.lua
-- answers:   { runs, the place before which more may be or nil, legend }; for a run see shown.lua; a place is a write
--            and the number of an event of it
-- reads:     events, d, hot, j, h, ids, texts
-- writes:    nothing

local PIECE, LOOKED_MAX = 50, 1000

-- The attempt that an event tells of, if it is shown.
local function run_of(work, legend, seen, event)
  local entry = roster.of(work, event[2])
  if not entry or not sight.covers(seen, entry.lane, entry.kind, entry.tenant) then return nil end
  local row = rows.of_number(work, event[2])
  for _, attempt in ipairs(row and rows.history(work, row) or {}) do
    if attempt.attempt == event[7] then return shown.run(legend, row, attempt) end
  end
  return nil
end

act('runs', {}, function(work, a)
  local place, limit, seen, legend = a[1], a[2], sight.open(work, a[3]), names.legend(work)
  local items, looked = {}, 0
  local function answer(following)
    return pack.array(3) .. pack.list(items) .. cmsgpack.pack(following) .. legend:packed()
  end
  if sight.is_empty(seen) then return answer(nil) end
  local before = place and place[1] .. '-0' or '+'
  while true do
    local piece = redis.call('XREVRANGE', keys.events(work.p), before, '-', 'COUNT', PIECE)
    for _, item in ipairs(piece) do
      local counter = tonumber(string.match(item[1], '^%d+'))
      local told = cmsgpack.unpack(item[2][2])[2]
      local last = place and place[1] == counter and place[2] - 1 or #told
      for index = last, 1, -1 do
        if looked == LOOKED_MAX or #items == limit then return answer({ counter, index + 1 }) end
        looked = looked + 1
        if told[index][1] == ATTEMPT_ENDED then
          local went, run = pcall(run_of, work, legend, seen, told[index])
          items[#items + 1] = went and run or nil
        end
      end
    end
    if #piece < PIECE then return answer(nil) end
    before = '(' .. piece[#piece][1]
  end
end)
