-- Looks for attempts that nobody keeps any more, for the policy to decide about. It changes nothing.
--
-- arguments: how many at most; or nil, and jobs of one worker that is dead, by their numbers
-- answers:   [attempts without payloads (leased.lua), legend]: those whose lease ran out, the longest ago first; or
--            those of these jobs that are held
-- reads:     leases, hot, j
-- writes:    nothing

-- Those of these numbers that are held.
local function held(work, numbers)
  local found = {}
  rows.load(work, numbers)
  for _, number in ipairs(numbers) do
    local row = rows.live(work, number)
    if row and row.lease then found[#found + 1] = row end
  end
  return found
end

local function run_out(work, limit)
  return indexes.up_to(keys.leases(work.p), string.format('%d', work.now_ms), limit)
end

-- A body without its payload, which is its first item.
local function bare(body)
  local kind, from = string.byte(body, 2), nil
  if kind == 0xc4 then
    from = 4 + string.byte(body, 3)
  elseif kind == 0xc5 then
    from = 5 + struct.unpack('>I2', body, 3)
  elseif kind == 0xc6 then
    from = 7 + struct.unpack('>I4', body, 3)
  else
    return body
  end
  return pack.array(4) .. pack.none .. string.sub(body, from)
end

act('recover_look', { writes = true, frees = true }, function(work, a)
  local found = held(work, a[2] or run_out(work, a[1]))
  local legend, items = names.legend(work), {}
  for i, row in ipairs(found) do
    local body = rows.body_of(redis.call('GET', keys.job(work.p, row.id)))
    items[i] = leased.pack(row, legend, bare(body))
  end
  return pack.array(2) .. pack.list(items) .. legend:packed()
end)
