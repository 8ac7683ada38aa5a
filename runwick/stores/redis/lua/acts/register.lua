-- Makes an application known, with the queues that a worker is about to serve and the scopes that are not there yet.
--
-- arguments: names of queues; scopes as limits.lua declares them
-- answers:   nil
-- reads:     rw:applications, rw:store, queues, scopes
-- writes:    rw:applications, meta, queues, scopes

act('register', { writes = true, new_work = true }, function(work, a)
  work:know()
  for _, queue in ipairs(a[1]) do work:know_queue(queue) end
  limits.declare_scopes(work, a[2])
  return pack.none
end)
