-- How the queues stand that somebody has registered or dispatched to.
--
-- arguments: none
-- answers:   { queue, revision, since when it is paused or nil } for each
-- reads:     queues
-- writes:    nothing

act('queues', {}, function(work)
  local items, all = {}, redis.call('HGETALL', keys.queues(work.p))
  for i = 1, #all, 2 do
    local stands = cmsgpack.unpack(all[i + 1])
    items[#items + 1] = pack.array(3) .. cmsgpack.pack(all[i], stands[1], stands[2] or nil)
  end
  return pack.list(items)
end)
