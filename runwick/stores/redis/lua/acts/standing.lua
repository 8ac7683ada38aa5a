-- How the store takes work of the application; one that it does not know yet is open and capable of nothing.
--
-- arguments: none
-- answers:   [store's id, revision, admission, capabilities joined by commas]
-- reads:     rw:store, meta
-- writes:    nothing

act('standing', {}, function(work)
  local store = redis.call('HMGET', keys.store, 'id', 'revision')
  return pack.array(4) .. pack.bin(store[1])
    .. cmsgpack.pack(tonumber(store[2]), work.meta.admission or 'open', work.meta.capabilities or '')
end)
