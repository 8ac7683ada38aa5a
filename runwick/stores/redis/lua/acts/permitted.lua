-- Whether the caller may do all that the acts of an application do; it is asked before the first of them.
--
-- key:       the application's prefix
-- answers:   OK, or an error that names the command
-- reads:     nothing
-- writes:    nothing

redis.register_function({
  function_name = LIBRARY .. '_permitted',
  flags = { 'no-writes' },
  callback = function(key_names)
    local missing = permissions.missing(key_names[1])
    if missing then return redis.error_reply('NOPERM ' .. missing) end
    return redis.status_reply('OK')
  end,
})
