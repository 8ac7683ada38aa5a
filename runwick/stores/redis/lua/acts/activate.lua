-- Turns a capability on for an application, for good, and notes who did it.
--
-- arguments: how long after it was last seen a worker counts, ms; the application's name; the capability's; the actor's
-- answers:   see operating.lua
-- reads:     rw:store, rw:applications; of every application meta, leases, workers
-- writes:    of that application meta and audit

local function as_json(list)
  if #list == 0 then return '[]' end
  return '["' .. table.concat(list, '","') .. '"]'
end

operator('activate', { writes = true }, function(a)
  local found = operating.look(a[1])
  local asked = operating.asked_for(found, a[2])[1]
  if not asked then return operating.answer(found) end
  local names_after = { a[3] }
  for _, name in ipairs(asked.capabilities) do
    if name == a[3] then return operating.answer(found) end
    names_after[#names_after + 1] = name
  end
  table.sort(names_after, pack.precedes)
  local refusal = operating.forbidden({ asked })
  if refusal then return refusal end
  local work = new_work(asked.p, asked.name, read_meta(asked.p), asked.now_ms)
  work:set('capabilities', table.concat(names_after, ','))
  local before, after = as_json(asked.capabilities), as_json(names_after)
  trail.write(work, nil, { a[4] }, 'activate_capability', { before = before, after = after })
  work:commit()
  return operating.answer(found, true)
end)
