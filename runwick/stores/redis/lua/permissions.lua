-- What functions ask of the server. An ACL that forbids one of these commands would end an act in its middle, with half
-- of it written, so all of them are asked for before an application's first act.

local permissions = {}

-- Keys of an application by their last part, and what is done to them; and the keys and channels of the store.
local COMMANDS = {
  { 'GET', 'j' }, { 'MGET', 'j' }, { 'GETRANGE', 'j' }, { 'EXISTS', 'j' }, { 'SET', 'claim', 1 }, { 'MSET', 'j', 1 },
  { 'SETRANGE', 'd', 0, 1 }, { 'UNLINK', 'h' },
  { 'HGET', 'meta', 1 }, { 'HMGET', 'meta', 1 }, { 'HGETALL', 'meta' }, { 'HKEYS', 'meta' }, { 'HVALS', 'meta' },
  { 'HLEN', 'meta' }, { 'HEXISTS', 'meta', 1 }, { 'HSET', 'meta', 1, 1 }, { 'HDEL', 'meta', 1 },
  { 'HINCRBY', 'meta', 1, 1 },
  { 'LRANGE', 'h', 0, 1 }, { 'RPUSH', 'h', 1 },
  { 'ZRANGE', 'w', 0, 1 }, { 'ZCARD', 'w' }, { 'ZCOUNT', 'w', 0, 1 }, { 'ZLEXCOUNT', 'w', '-', '+' },
  { 'ZSCAN', 'w', 0 },
  { 'ZADD', 'w', 1, 1 }, { 'ZREM', 'w', 1 }, { 'ZREMRANGEBYSCORE', 'w', 0, 1 }, { 'ZREMRANGEBYRANK', 'w', 0, 1 },
  { 'XADD', 'events', '*', 1, 1 }, { 'XRANGE', 'events', '-', '+' }, { 'XREVRANGE', 'events', '+', '-' },
}
local OF_THE_STORE = {
  { 'TIME' }, { 'HMGET', keys.store, 1 }, { 'HGET', keys.store, 1 }, { 'HGET', keys.applications, 1 },
  { 'HLEN', keys.applications }, { 'HGETALL', keys.applications }, { 'HSET', keys.applications, 1, 1 },
  { 'PUBLISH', keys.work, 1 }, { 'PUBLISH', keys.asked, 1 },
}

local function of_application(p, command)
  local asked = { unpack(command) }
  asked[2] = p .. command[2]
  return asked
end

-- The first command that the caller may not give, with its key or channel; nil where there is none.
function permissions.missing(p)
  for _, command in ipairs(COMMANDS) do
    local asked = of_application(p, command)
    if not redis.acl_check_cmd(unpack(asked)) then return asked[1] .. ' on ' .. asked[2] end
  end
  for _, asked in ipairs(OF_THE_STORE) do
    if not redis.acl_check_cmd(unpack(asked)) then return asked[1] .. (asked[2] and ' on ' .. asked[2] or '') end
  end
  return nil
end
