-- Reads all that the checker judges and that no public read tells. For a store at rest.
--
--   rows:    jobs [id, operation, retry settings, size of the payload, lives, state, generation, revision, executions,
--            when it was asked to stop, limits that it holds, line in which it stands]
--   limits:  [scopes [id, kind, key, capacity, used], windows [id, kind, key, most, length, granted], jobs with a key]
--   log:     [changes [what, limit, job, value, time], claims [attempt, time]]

local function opened(application)
  local p = keys.prefix(application)
  return new_work(p, application, read_meta(p), server_ms())
end

operator('chaos_rows', {}, function(a)
  local work, items = opened(a[1]), {}
  local prefix = keys.job(work.p, '')
  for i, key in ipairs(redis.call('KEYS', prefix .. '*')) do
    local row = work:find(string.sub(key, #prefix + 1))
    items[i] = pack.array(12) .. pack.bin(row.id) .. pack.bin(row.operation or uniqueness.operation_of(row.id))
      .. pack.bin(names.text(work, 'P', row.policy))
      .. cmsgpack.pack(row.bytes, row.lives, row.state, row.generation, row.revision, row.executions, row.cancel)
      .. pack.bins(row.lease and row.lease.holds or {}) .. pack.bin(row.line)
  end
  return pack.list(items)
end)

operator('chaos_limits', {}, function(a)
  local work, scopes, windows, held = opened(a[1]), {}, {}, {}
  for i, id in ipairs(redis.call('HKEYS', keys.scopes(work.p))) do
    local scope = limits.scope(work, id)
    scopes[i] = pack.array(5) .. pack.bin(id) .. cmsgpack.pack(scope.kind, scope.key, scope.capacity, scope.used)
  end
  for i, id in ipairs(redis.call('HKEYS', keys.windows(work.p))) do
    local window = limits.window(work, id)
    windows[i] = pack.array(6) .. pack.bin(id)
      .. cmsgpack.pack(window.kind, window.key, window.most, window.length, window.granted)
  end
  for i, number in ipairs(redis.call('HVALS', keys.active(work.p))) do held[i] = roster.id(work, tonumber(number)) end
  return pack.array(3) .. pack.list(scopes) .. pack.list(windows) .. pack.bins(held)
end)

operator('chaos_log', {}, function(a)
  local changes, claims = {}, {}
  for _, entry in ipairs(redis.call('XRANGE', keys.chaos_log(keys.prefix(a[1])), '-', '+')) do
    local at, changed, claimed = unpack(cmsgpack.unpack(entry[2][2]))
    for _, change in ipairs(changed) do
      changes[#changes + 1] = pack.array(5) .. cmsgpack.pack(change[1]) .. pack.bin(change[2] or nil)
        .. pack.bin(change[3] or nil) .. cmsgpack.pack(change[4] or nil, at)
    end
    for _, attempt in ipairs(claimed) do
      claims[#claims + 1] = pack.array(2) .. pack.bin(attempt) .. cmsgpack.pack(at)
    end
  end
  return pack.array(2) .. pack.list(changes) .. pack.list(claims)
end)
