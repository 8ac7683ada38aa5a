-- Authorises a reserved attempt to call its handler, charges it and gives it its payload. A job that somebody has
-- cancelled, or that has expired, ends instead. Sent again it finds the attempt begun, and charges nothing.
--
-- arguments: job, outward; claim token
-- answers:   [what: 0 not the caller's, 1 begun, 2 cancelled, 3 expired; execution; body; payload that lies apart]
-- reads:     hot, j:<id>, p:<id>
-- writes:    hot; with what ends all that an end writes, and what calling in writes

local NOT_YOURS, BEGUN, CANCELS, EXPIRES = 0, 1, 2, 3

local function without(what) return pack.array(4) .. cmsgpack.pack(what, 0, nil, nil) end

act('begin', { writes = true, new_work = true }, function(work, a)
  local row = work:held(a[1], a[2])
  if not row or row.lease.till <= work.now_ms then return without(NOT_YOURS) end
  if row.state == RESERVED then
    local cancels = rows.cancel_stands(row)
    if cancels or rows.has_expired(row, work.now_ms) then
      if cancels then work:close_cancelled(row) else work:close_expired(row) end
      work:call_in()
      return without(cancels and CANCELS or EXPIRES)
    end
    row.state = RUNNING
    row.revision, row.executions = row.revision + 1, row.executions + 1
  end
  local payload = row.apart and redis.call('GET', keys.payload(work.p, row.id))
  return pack.array(4) .. cmsgpack.pack(BEGUN, row.executions)
    .. rows.body_of(redis.call('GET', keys.job(work.p, row.id))) .. pack.bin(payload)
end)
