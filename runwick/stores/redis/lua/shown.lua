-- What people read of attempts that have ended, and of limits.

local shown = {}

-- { job, generation, number, kind, lane, tenant, outcome, code, begun, ended, size of the payload, detail }; the detail
-- as Python packed it, or nil.
function shown.run(legend, row, attempt)
  return pack.array(12) .. pack.bin(row.id) .. cmsgpack.pack(
    attempt.generation, attempt.number, legend:note('K', row.kind), legend:note('L', row.lane),
    legend:note('T', row.tenant), attempt.outcome, legend:note('C', attempt.code), attempt.begun, attempt.ended,
    row.bytes
  ) .. pack.bin(attempt.detail)
end

local function is_waited_for(work, limit)
  for _, lane in ipairs(limit.lanes) do
    if redis.call('ZCARD', keys.line(work.p, limit.id, lane)) > 0 then return true end
  end
  return false
end

-- { id, kind, key, capacity, in use, whether somebody waits, revision, fence }
function shown.scope(work, scope)
  return pack.array(8) .. pack.bin(scope.id) .. cmsgpack.pack(
    scope.kind, scope.key, scope.capacity, scope.used, is_waited_for(work, scope), scope.revision, scope.fence
  )
end

-- How many grants are within the window that ends now. They lie in the order of their times. Reading moves nothing.
function shown.in_window(work, window)
  local time = math.max(work.now_ms + window.shift, window.last)
  local low, high = math.max(0, window.granted - window.most), window.granted
  while low < high do
    local middle = math.floor((low + high) / 2)
    local slot = string.format('%d', middle % window.most)
    local at = tonumber(redis.call('HGET', keys.slots(work.p, window.id), slot))
    if at and at + window.length > time then high = middle else low = middle + 1 end
  end
  return window.granted - low
end

-- { id, kind, key, at most so many, length, granted, in the window, whether somebody waits }
function shown.rate(work, window)
  return pack.array(8) .. pack.bin(window.id) .. cmsgpack.pack(
    window.kind, window.key, window.most, window.length, window.granted, shown.in_window(work, window),
    is_waited_for(work, window)
  )
end
