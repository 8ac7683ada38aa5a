-- Shows what is private, and writes the row of the audit trail that says so. What was shown is never kept: sent again,
-- a command reads again, and writes no second row.
--
-- arguments: what; command id, fingerprint; actor's subject, display, scheme; reason or nil; the action and the target
--            for the audit trail (nil: none); the job's id; an attempt's id or nil
-- answers:   nil where the command id was used for something else; [] where there is no such job; else [whether it was
--            shown before, whether a payload lies apart, bytes or nil, text of a stack or nil]; the bytes are a payload
--            that lies apart, the body of another, a result, or an attempt's detail
-- reads:     commands, j, p, o, h, hot, looks
-- writes:    commands, audit, audited, events

local function attempt_of(work, row, id)
  for _, attempt in ipairs(id and rows.history(work, row) or {}) do
    if attempt.attempt == id then return attempt end
  end
  return nil
end

-- The bytes of it, and of a stack its text.
local function read(work, row, what, attempt, attempt_id)
  if what == 'payload' then
    return row.apart and redis.call('GET', keys.payload(work.p, row.id))
      or rows.body_of(redis.call('GET', keys.job(work.p, row.id)))
  end
  if what == 'result' then return redis.call('GET', keys.result(work.p, row.id)) end
  if what == 'stack' then return nil, attempt_id and looks.answer(work, attempt_id, row.number) end
  return attempt and attempt.detail
end

act('reveal', { writes = true, late = true }, function(work, a)
  local kept = commands.kept(work, a[2], a[3])
  if kept == false then return pack.none end
  if not kept then work:admit() end
  local row = work:find(a[10])
  if not row then return pack.array(0) end
  local attempt = attempt_of(work, row, a[11])
  if not kept then
    commands.keep(work, a[2], a[3], '')
    trail.write(work, row, { a[4], a[5], a[6] }, a[8], {
      command = a[2], reason = a[7], target = a[9], generation = attempt and attempt.generation,
    })
  end
  local bytes, text = read(work, row, a[1], attempt, a[11])
  return pack.array(4) .. cmsgpack.pack(kept ~= nil, row.apart or false) .. pack.bin(bytes) .. cmsgpack.pack(text)
end)
