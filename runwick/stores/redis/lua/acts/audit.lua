-- What operators did behind a place, in its order.
--
-- arguments: the place: a write, and which row of it; how many rows
-- answers:   { whether the store ever came that far, rows, the place behind them }; see trail.lua
-- reads:     meta, audit, d
-- writes:    nothing

act('audit', {}, function(work, a)
  local place, items = a[1], {}
  local function answer(is_known)
    return pack.array(3) .. cmsgpack.pack(is_known) .. pack.list(items) .. cmsgpack.pack(place)
  end
  if place[1] > work.meta.writes then return answer(false) end
  local after = '(' .. place[1] .. '-' .. place[2]
  for i, item in ipairs(redis.call('XRANGE', keys.audit(work.p), after, '+', 'COUNT', a[2])) do
    local counter, index = string.match(item[1], '^(%d+)-(%d+)$')
    place = { tonumber(counter), tonumber(index) }
    items[i] = trail.shown(work, item[1], cmsgpack.unpack(item[2][2]))
  end
  return answer(true)
end)
