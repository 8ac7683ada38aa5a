-- Ends a worker's presence at once.
--
-- arguments: worker
-- answers:   nothing
-- reads:     workers
-- writes:    workers

act('depart', { writes = true, frees = true }, function(work, a)
  workers.depart(work, a[1], true)
  return pack.none
end)
