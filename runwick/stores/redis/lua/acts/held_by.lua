-- Looks through a part of all leases for those that one worker holds; the whole is too much for one call. It changes
-- nothing. Whoever holds one from the first part to the last is found.
--
-- arguments: the worker; where to go on, as text, '0' in the beginning
-- answers:   [where to go on, '0' at the end; numbers of its jobs, and until when each is leased, of all]
-- reads:     leases, hot
-- writes:    nothing

local PIECE = 4000

act('held_by', { writes = true, frees = true }, function(work, a)
  local scanned = redis.call('ZSCAN', keys.leases(work.p), a[2], 'COUNT', PIECE)
  local numbers, found = {}, {}
  for i = 1, #scanned[2], 2 do numbers[#numbers + 1] = scanned[2][i] end
  for from = 1, #numbers, PIECE do
    local to = math.min(from + PIECE - 1, #numbers)
    for i, text in ipairs(redis.call('HMGET', keys.hot(work.p), unpack(numbers, from, to))) do
      if text and layout.worker(text) == a[1] then
        local at = from + i - 1
        found[#found + 1], found[#found + 2] = tonumber(numbers[at]), tonumber(scanned[2][2 * at])
      end
    end
  end
  return cmsgpack.pack({ scanned[1], found })
end)
