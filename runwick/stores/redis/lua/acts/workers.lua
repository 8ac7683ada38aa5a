-- Who works here.
--
-- arguments: within how many milliseconds they were seen
-- answers:   a list of [id, how it was kept (workers.lua)]
-- reads:     workers
-- writes:    nothing

act('workers', {}, function(work, a)
  local found, all = {}, redis.call('HGETALL', keys.workers(work.p))
  for i = 1, #all, 2 do
    if workers.find(work, all[i]).seen >= work.now_ms - a[1] then
      found[#found + 1] = pack.array(2) .. pack.bin(all[i]) .. all[i + 1]
    end
  end
  return pack.list(found)
end)
