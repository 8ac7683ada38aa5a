-- Puts applications into a mode: all that it was asked for, or none when one of them may not go there.
--
-- arguments: how long after it was last seen a worker counts, ms; one application's name, or nil for all; the mode; the
--            modes from which it may be entered, itself among them
-- answers:   see operating.lua
-- reads:     rw:store, rw:applications; of every application meta, leases, workers
-- writes:    of those applications meta

operator('admit', { writes = true, frees = true }, function(a)
  local found, may = operating.look(a[1]), {}
  for _, mode in ipairs(a[4]) do may[mode] = true end
  local asked = operating.asked_for(found, a[2])
  for _, each in ipairs(asked) do
    if not may[each.admission] then return operating.answer(found) end
  end
  local refusal = operating.forbidden(asked)
  if refusal then return refusal end
  for _, each in ipairs(asked) do redis.call('HSET', keys.meta(each.p), 'admission', a[3]) end
  return operating.answer(found, true)
end)
