-- Gives the store another identity, unless somebody can be at work in it: every application is under maintenance, and
-- neither a lease that has not run out nor a worker lives.
--
-- arguments: how long after it was last seen a worker counts, ms; the new identity, 16 bytes
-- answers:   see operating.lua
-- reads:     rw:store, rw:applications; of every application meta, leases, workers
-- writes:    rw:store

operator('reidentify', { writes = true }, function(a)
  local found = operating.look(a[1])
  for _, each in ipairs(found.applications) do
    if each.admission ~= 'maintenance' or each.valid > 0 or each.workers > 0 then return operating.answer(found) end
  end
  if found.is_ours then redis.call('HSET', keys.store, 'id', a[2]) end
  return operating.answer(found, found.is_ours)
end)
