-- Does what an operator asks to each target that still stands as the operator saw it: cancel, retry, rerun, look.
--
-- arguments: command id, fingerprint; actor's subject, display, scheme; reason or nil; targets: job's id, generation,
--            revision, of all
-- answers:   [whether this was answered before, answers]; nil where the command id was used for something else
--            answer: [job's id, code or nil, state, generation, revision, whether it was asked to stop,
--                     attempt's id or nil]                     of a job that there is not, the id and the code alone
-- reads:     commands, j, d, hot, active
-- writes:    hot, h, j, o, d, n, w, leases, cancels, retrying, expiry, active, line, lined, scopes, windows, slots,
--            looks, looks:asked, commands, audit, audited, ends, events, ids, texts

local OPENS_FROM = { retry = { [FAILED] = true, [CANCELLED] = true }, rerun = { [SUCCEEDED] = true } }

local function allows(action, row)
  if action == 'cancel' then return rows.is_live(row) and not rows.cancel_stands(row) end
  if action == 'look' then return rows.is_leased(row) and row.lease.begun ~= nil end
  return OPENS_FROM[action][row.state] ~= nil
end

-- The code of why nothing may be done to a job that there is, or nil. `opened`: active keys that this act gave.
local function refusal(work, action, row, generation, revision, opened)
  if generation ~= row.generation then return 'stale_generation' end
  if revision ~= row.revision then return 'stale_revision' end
  if not allows(action, row) then return 'invalid_state' end
  local is_opened = OPENS_FROM[action] and row.active
  if is_opened and (opened[row.active] or redis.call('HEXISTS', keys.active(work.p), row.active) == 1) then
    return 'uniqueness_conflict'
  end
  return nil
end

local function cancel(work, row)
  row.cancel = work.now_ms
  if not row.lease then
    work:close_cancelled(row)
  else
    row.revision = row.revision + 1
    work.wanted[row.lease.worker] = true
  end
end

-- Change the job; of a look, answer whose stack will come.
local function change(work, action, row, opened)
  if action == 'cancel' then
    cancel(work, row)
  elseif action == 'look' then
    looks.ask(work, row)
    return row.lease.attempt
  else
    work:reopen(row)
    if row.active then opened[row.active] = true end
  end
  return nil
end

local function packed(row, code, attempt)
  return pack.array(7) .. pack.bin(row.id)
    .. cmsgpack.pack(code, row.state, row.generation, row.revision, rows.cancel_stands(row)) .. pack.bin(attempt)
end

-- Answers what became of one target, and whether it was changed.
local function answer(work, action, a, at, opened)
  local id, generation, revision = a[7][at], a[7][at + 1], a[7][at + 2]
  local row = work:find(id)
  if not row then return pack.array(2) .. pack.bin(id) .. cmsgpack.pack('not_found'), false end
  local code, attempt = refusal(work, action, row, generation, revision, opened), nil
  if not code then
    local before = row.state
    attempt = change(work, action, row, opened)
    trail.write(work, row, { a[3], a[4], a[5] }, action, {
      command = a[1], reason = a[6], before = STATES[before], after = STATES[row.state],
    })
  end
  return packed(row, code, attempt), code == nil
end

local function register(action, flags)
  act(action, flags, function(work, a)
    local kept = commands.kept(work, a[1], a[2])
    if kept == false then return pack.none end
    if kept then return pack.array(2) .. cmsgpack.pack(true) .. kept end
    work:admit()
    local answers, opened, is_changed = {}, {}, false
    for at = 1, #a[7], 3 do
      local text, did = answer(work, action, a, at, opened)
      answers[#answers + 1] = text
      is_changed = is_changed or did
    end
    work:call_in()
    local all = pack.list(answers)
    if is_changed then commands.keep(work, a[1], a[2], all) end
    return pack.array(2) .. cmsgpack.pack(false) .. all
  end)
end

register('cancel', { writes = true, late = true, frees = true })
register('look', { writes = true, late = true, frees = true })
register('retry', { writes = true, late = true, new_work = true })
register('rerun', { writes = true, late = true, new_work = true })
