-- Makes a store where there is none.
--
-- arguments: its identity, 16 bytes; the capabilities of applications that come, joined by commas
-- answers:   see operating.lua; no identity where applications are and their store's is missing
-- reads:     rw:store, rw:applications
-- writes:    rw:store

operator('migrate', { writes = true }, function(a)
  local is_free = redis.call('EXISTS', keys.store, keys.applications) == 0
  if is_free then
    redis.call('HSET', keys.store, 'id', a[1], 'revision', REVISION, 'created_at_ms', string.format('%d', server_ms()),
      'capabilities', a[2])
  end
  return operating.answer(operating.look(0), is_free)
end)
