-- Creates jobs, all or none, or finds those that uniqueness keys name. What was applied before is answered again,
-- whatever the deadline and the application's mode have become.
--
-- arguments: ids of the stores that it is meant for; whether it goes on behind a conflict; five tables and the items,
--            see intake.lua, each job once; by hand { fingerprint, actor, display, scheme, reason } or nil; for how
--            long behind its deadline an operation's answer is kept (ms)
-- answers:   [APPLIED, found, failed]: found are [place, job's id, match, drift], failed are [place, code, job's id],
--            all others were created. Or why nothing was done: [TAKEN, place, operation that created the job],
--            [LATE, place, the store's time], [CONFLICT, place, code, job's id], [ELSEWHERE, meant, found], [NO_RATES],
--            [USED]. Places count from 0
-- reads:     rw:store, j:<id>, reused:<operation>, hot, active, unique, commands, ids, queues, scopes, windows
-- writes:    rw:applications, meta, j:<id>, p:<id>, hot, d, n, w, kinds, expiry, active, unique, unique:until,
--            reused:<operation>, queues, scopes, windows, ids, texts, events; by hand commands, audit, audited

local APPLIED, TAKEN, LATE, CONFLICT, ELSEWHERE, NO_RATES, USED = 0, 1, 2, 3, 4, 5, 6

-- Note what is there of these items: the job of that id, the answer that the operation had. Most often it is nothing.
local function look(work, items)
  local wanted = {}
  for _, item in ipairs(items) do
    wanted[#wanted + 1] = keys.job(work.p, item.id)
    wanted[#wanted + 1] = keys.reused(work.p, intake.operation_of(item))
  end
  local there = 0
  for from = 1, #wanted, 4000 do
    there = there + redis.call('EXISTS', unpack(wanted, from, math.min(from + 3999, #wanted)))
  end
  if there == 0 then return end
  for _, item in ipairs(items) do
    item.row = work:find(item.id)
    item.kept = uniqueness.kept(work, intake.operation_of(item))
    item.was_applied = item.row ~= nil or item.kept ~= nil
  end
end

local function may_have_rates(work)
  local capabilities = work.meta.capabilities
  if not work.meta.number then capabilities = redis.call('HGET', keys.store, 'capabilities') or '' end
  return string.find(',' .. capabilities .. ',', ',rate_admission,', 1, true) ~= nil
end

-- The refusal of what may not be applied now, unless it was before; nil: go on.
local function check(work, items)
  for i, item in ipairs(items) do
    local created_by = item.row and intake.operation_of(item.row)
    if created_by and created_by ~= intake.operation_of(item) then
      return pack.array(3) .. cmsgpack.pack(TAKEN, i - 1) .. pack.bin(created_by)
    end
    if not item.was_applied then
      work:admit()
      if work.now_ms > item.deadline then return pack.array(3) .. cmsgpack.pack(LATE, i - 1, work.now_ms) end
    end
  end
  for _, item in ipairs(items) do
    if item.rates and not item.was_applied and not may_have_rates(work) then
      return pack.array(1) .. cmsgpack.pack(NO_RATES)
    end
  end
  return nil
end

-- Those that were not applied before, as `uniqueness` judges them. Settings that nobody has yet are told apart by where
-- they stand in the arguments.
local function not_applied(work, tables, items)
  local left, known = {}, {}
  for i, item in ipairs(items) do
    if not item.was_applied then
      local place = item.settings
      known[place] = known[place] or names.known(work, 'P', tables.settings[place][1]) or -place
      item.policy, item.place = known[place], i - 1
      left[#left + 1] = item
    end
  end
  return left
end

local function apply(work, tables, items, answers, kept_ms)
  local first = work.meta.jobs + 1
  for i, item in ipairs(items) do
    local answer = answers[i]
    item.answer = answer
    if answer.what == uniqueness.CREATE then
      intake.create(work, tables, item)
    elseif answer.what == uniqueness.REUSE then
      uniqueness.keep(work, intake.operation_of(item), answer, item.deadline + kept_ms)
    end
    if item.window and (answer.what == uniqueness.CREATE or answer.links) then
      uniqueness.link(work, item, answer.job)
    end
  end
  local count = work.meta.jobs + 1 - first
  if count > 0 then work:tell({ DISPATCHED, first, count }) end
end

local function applied(items)
  local found, failed = {}, {}
  for i, item in ipairs(items) do
    local answer = item.kept or item.answer
    if answer and answer.match then
      found[#found + 1] = uniqueness.packed(i - 1, answer)
    elseif answer and answer.code then
      failed[#failed + 1] = pack.array(3) .. cmsgpack.pack(i - 1, answer.code) .. pack.bin(answer.job)
    end
  end
  return pack.array(3) .. cmsgpack.pack(APPLIED) .. pack.list(found) .. pack.list(failed)
end

local function dispatch(work, tables, items, go_on, kept_ms)
  local refusal = check(work, items)
  if refusal then return refusal end
  local left = not_applied(work, tables, items)
  local answers, conflict = uniqueness.resolve(work, left, go_on)
  if conflict then
    local place = left[#answers].place
    return pack.array(4) .. cmsgpack.pack(CONFLICT, place, conflict.code) .. pack.bin(conflict.job)
  end
  apply(work, tables, left, answers, kept_ms)
  return applied(items)
end

-- By hand. ---------------------------------------------------------------------------------------------------------

-- Keep its one item's answer, and write down the job that was created.
local function keep(work, item, hand)
  local answer, operation = item.answer, intake.operation_of(item)
  if answer.what == uniqueness.CONFLICT then return end
  commands.keep(work, operation, hand[1], cmsgpack.pack(answer.job, answer.match or 0, answer.drift or false))
  if answer.what == uniqueness.CREATE then
    local row, actor = work:find(item.id), { hand[2], hand[3], hand[4] }
    trail.write(work, row, actor, 'dispatch', { command = operation, reason = hand[5], after = 'pending' })
  end
end

local function dispatch_by_hand(work, tables, item, hand, go_on, kept_ms)
  local reply = commands.kept(work, intake.operation_of(item), hand[1])
  if reply then
    local job, match, drift = cmsgpack.unpack(reply)
    item.kept = { job = job, match = match, drift = drift }
    return applied({ item })
  end
  look(work, { item })
  if reply == false or item.was_applied then return pack.array(1) .. cmsgpack.pack(USED) end
  local answer = dispatch(work, tables, { item }, go_on, kept_ms)
  if item.answer then keep(work, item, hand) end
  return answer
end

act('dispatch', { writes = true, new_work = true, late = true }, function(work, a)
  for _, meant in ipairs(a[1]) do
    local found = redis.call('HGET', keys.store, 'id')
    if meant ~= found then return pack.array(3) .. cmsgpack.pack(ELSEWHERE) .. pack.bin(meant) .. pack.bin(found) end
  end
  local tables, items = intake.tables(a[3], a[4], a[5], a[6], a[7]), intake.items(a[8])
  if a[9] then return dispatch_by_hand(work, tables, items[1], a[9], a[2], a[10]) end
  look(work, items)
  return dispatch(work, tables, items, a[2], a[10])
end)
