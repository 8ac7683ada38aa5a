-- A page of the audit trail, the latest first.
--
-- arguments: the place behind which it begins, as two numbers, or nil; how many; what is asked for, where nil does not
--            matter: action, actor's subject, job's id, target or its first word, from, until (ms)
-- answers:   { rows, the place behind which more may follow or nil }; see trail.lua
-- reads:     audit, audited, j, d
-- writes:    nothing

local PIECE, LOOKED_MAX = 250, 2000

local function is_meant(asked, values)
  local target = values[12]
  local meets_target = not asked.target
    or target and (target == asked.target or string.match(target, '^[^ ]*') == asked.target)
  return (not asked.action or asked.action == values[5])
    and (not asked.actor or asked.actor == values[2])
    and (not asked.till or values[1] < asked.till)
    and meets_target
end

-- The rows from the latest on that stand before a place: all of them, or those of one job.
local function backwards(work, before, number)
  local key, from, at, piece = keys.audit(work.p), before and '(' .. before[1] .. '-' .. before[2] or '+', 0, {}
  if number then
    local ids = redis.call('LRANGE', keys.audited(work.p, string.format('%d', number)), 0, -1)
    local left = #ids + 1
    return function()
      left = left - 1
      return ids[left] and redis.call('XRANGE', key, ids[left], ids[left])[1]
    end
  end
  return function()
    at = at + 1
    if at > #piece then
      if at > 1 and #piece < PIECE then return nil end
      piece, at = redis.call('XREVRANGE', key, from, '-', 'COUNT', PIECE), 1
      if #piece > 0 then from = '(' .. piece[#piece][1] end
    end
    return piece[at]
  end
end

local function place_of(id)
  local counter, index = string.match(id, '^(%d+)-(%d+)$')
  return { tonumber(counter), tonumber(index) }
end

local function stands_before(place, before)
  return not before or place[1] < before[1] or (place[1] == before[1] and place[2] < before[2])
end

act('audited', {}, function(work, a)
  local before, limit, v = a[1], a[2], a[3]
  local asked = { action = v[1], actor = v[2], target = v[4], from = v[5], till = v[6] }
  local items, looked, last = {}, 0, nil
  local function answer(following) return pack.array(2) .. pack.list(items) .. cmsgpack.pack(following) end
  local row = v[3] and work:find(v[3])
  if v[3] and not row then return answer(nil) end
  local last_shown
  for item in backwards(work, before, row and row.number) do
    local place, values = place_of(item[1]), cmsgpack.unpack(item[2][2])
    if asked.from and values[1] < asked.from then return answer(nil) end  -- and so is all that was done before
    if stands_before(place, before) then
      if looked == LOOKED_MAX then return answer(last) end
      looked, last = looked + 1, place
      if is_meant(asked, values) then
        if #items == limit then return answer(last_shown) end
        items[#items + 1], last_shown = trail.shown(work, item[1], values), place
      end
    end
  end
  return answer(nil)
end)
