-- The numbers of all applications of the store. It is called for none of them, so that it touches no keys of one, which
-- an ACL may forbid; of the gate it passes what is about the store.
--
-- arguments: none
-- answers:   [[name, number], …]
-- reads:     rw:store, rw:applications

redis.register_function({
  function_name = LIBRARY .. '_applications',
  flags = { 'no-writes' },
  callback = function(_, arguments)
    local refusal = check_store(arguments[1])
    if refusal then return redis.error_reply(refusal) end
    local found, items = redis.call('HGETALL', keys.applications), {}
    for i = 1, #found, 2 do items[#items + 1] = cmsgpack.pack({ found[i], tonumber(found[i + 1]) }) end
    return pack.array(3) .. cmsgpack.pack(0, server_ms()) .. pack.list(items)
  end,
})
