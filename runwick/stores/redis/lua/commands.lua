-- What operators' commands were answered. One that changed something is answered the same for ever.

local commands = {}

-- The answer of then, packed; nil where the id is free, false where it was used for something else.
function commands.kept(work, id, fingerprint)
  local text = redis.call('HGET', keys.commands(work.p), id)
  if not text then return nil end
  local known, answer = cmsgpack.unpack(text)
  return known == fingerprint and answer
end

-- Keep what is answered: a packed value, which may be empty.
function commands.keep(work, id, fingerprint, answer)
  work:put('HSET', keys.commands(work.p), { id, cmsgpack.pack(fingerprint, answer) })
end
