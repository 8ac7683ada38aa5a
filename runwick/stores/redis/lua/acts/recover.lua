-- Ends attempts that nobody keeps any more, as it was decided for them: those that still are as they were looked at.
--
-- arguments: ways, members and their count, see ending.lua; for each whether it had begun; a dead worker, or nil
-- answers:   how many were ended; or what is less than 0: the place of the member whose job's state does not allow what
--            it says, negated, and nothing is written
-- reads:     hot, workers
-- writes:    as settle; workers

act('recover', { writes = true, frees = true }, function(work, a)
  local settlements, begun, dead = ending.unpack(a[1], a[2], a[3]), a[4], a[5]
  local held = ending.held(work, settlements, {})
  for i, s in ipairs(settlements) do
    local lease = held[i] and held[i].lease
    local is_kept = lease and ((dead and lease.worker ~= dead) or (not dead and lease.till > work.now_ms))
    if is_kept or (lease and rows.begun(held[i]) ~= begun[i]) then held[i] = false end
    if held[i] and ending.is_barred(held[i], s) then return cmsgpack.pack(-i) end
  end
  local ended = 0
  for i, s in ipairs(settlements) do
    if held[i] then
      ending.abandon(work, held[i], s)
      ended = ended + 1
    end
  end
  work:call_in()
  if dead then workers.depart(work, dead) end
  return cmsgpack.pack(ended)
end)
