-- Takes due jobs under a lease, as a plan says; those that meet a full limit are moved aside.
--
--   turn by turn, in claim order:   not due ──▶ next turn     another kind ──▶ not looked at
--                                   expired ──▶ closed        a limit is full ──▶ in its line, or due later
--                                   else    ──▶ taken         may not run ahead, or full ──▶ the end
--
-- arguments: claim token; worker; an id of which those of the attempts are made; turns [lane, queue, most, waited ms];
--            kinds; free; ahead; most attempts; room for payloads, bytes; lease, ms
-- answers:   [ms until the next is due, or nil; stopped at one that may not run ahead; again; in how many ms those are
--            due that it called; parked; deferred; attempts (leased.lua); legend]
-- reads:     ids, texts, queues, kinds, w:<lane>:<kind>, hot, j:<id>, p:<id>, scopes, windows, slots, line,
--            claim:<token>
-- writes:    hot, w:<lane>:<kind>, leases, leased, claim:<token>; where limits are met scopes, windows, slots, line and
--            what tells of lines; where jobs have expired all that an end writes

local CLAIM_KEPT_MS = 600000

-- Makes the ids of a claim's attempts of one id: counted on in its last seven bits, of which a claim needs no more. So
-- they are in order and unique, and Python need not make one for each job that might be taken.
local function attempt_ids(id)
  local head, last = string.sub(id, 1, 15), string.byte(id, 16)
  last = last - last % 128
  return function(place) return head .. string.char(last + place - 1) end
end

local function take(work, plan, candidate)
  local row = candidate.row
  row.called = nil
  row.state = row.rides and RUNNING or RESERVED
  row.revision, row.attempts = row.revision + 1, row.attempts + 1
  if row.rides then row.executions = row.executions + 1 end
  row.lease = {
    attempt = candidate.attempt,
    token = plan.token,
    worker = plan.worker,
    till = work.now_ms + plan.lease_ms,
    holds = #candidate.scopes > 0 and candidate.scopes or nil,
    fences = candidate.fences,
  }
  return row
end

-- Lease what is taken; answers parts for `leased.pack_all`.
local function take_all(work, plan, taken, legend)
  local parts, numbers, short, attempt_id = {}, {}, {}, attempt_ids(plan.id)
  for i, candidate in ipairs(taken) do
    candidate.attempt = attempt_id(i)
    if candidate.text then
      short[#short + 1] = candidate
      parts[i], numbers[i] = candidate, string.sub(candidate.member, 17)
    else
      local row = take(work, plan, candidate)
      parts[i], numbers[i] = leased.part(row, legend), row.number
    end
  end
  if #short > 0 then plain.lease(work, short, legend, plan.token, plan.worker, work.now_ms + plan.lease_ms) end
  if #taken > 0 then
    local kept_ms = string.format('%d', math.max(2 * plan.lease_ms, CLAIM_KEPT_MS))
    work:run('SET', keys.claim(work.p, plan.token), table.concat(numbers, ','), 'PX', kept_ms)
  end
  return parts
end

-- Do what was decided of the others.
local function move_aside(work, admitted)
  for _, row in ipairs(admitted.expired) do
    row.called = nil  -- passed on already
    work:close_expired(row)
  end
  for _, parked in ipairs(admitted.parked) do work:park(parked.row, parked.limit) end
  for _, deferred in ipairs(admitted.deferred) do work:call(deferred.row, deferred.limit, deferred.due) end
  work:take_calls(admitted.called)
end

local function alarms(work, admitted)
  local found, items = {}, {}
  for _, deferred in ipairs(admitted.deferred) do found[#found + 1] = deferred.due - work.now_ms end
  for _, call in ipairs(admitted.called) do found[#found + 1] = math.max(0, (call.due or 0) - work.now_ms) end
  table.sort(found)
  for i, in_ms in ipairs(found) do items[i] = cmsgpack.pack(in_ms) end
  return pack.list(items)
end

local function next_due_in(work, turns)
  local first
  for _, turn in ipairs(turns) do
    local due = waiting.first_due(turn.sets)
    if due and (not first or due < first) then first = due end
  end
  return first and math.max(0, first - work.now_ms)
end

local function packed(work, parts, legend, next_due, admitted)
  return pack.array(8) .. cmsgpack.pack(next_due, admitted.stopped_at_lone, admitted.is_again) .. alarms(work, admitted)
    .. cmsgpack.pack(#admitted.parked, #admitted.deferred) .. leased.pack_all(work, parts) .. legend:packed()
end

-- What a claim still holds whose answer was lost, in claim order.
local function claimed_before(work, plan, text)
  local numbers, parts, legend = {}, {}, names.legend(work)
  for number in string.gmatch(text, '%d+') do numbers[#numbers + 1] = tonumber(number) end
  rows.load(work, numbers)
  for _, number in ipairs(numbers) do
    local row = work.rows[number]
    if row and row.lease and row.lease.token == plan.token then parts[#parts + 1] = leased.part(row, legend) end
  end
  local nothing = { stopped_at_lone = false, is_again = false, parked = {}, deferred = {}, called = {} }
  return packed(work, parts, legend, #parts == 0 and 0 or nil, nothing)
end

act('claim', { writes = true, new_work = true }, function(work, a)
  local plan = {
    token = a[1], worker = a[2], id = a[3], turns = a[4], free = a[6], want = math.min(a[6] + a[7], a[8]),
    room_bytes = a[9], lease_ms = a[10],
  }
  local before = redis.call('GET', keys.claim(work.p, plan.token))
  if before then return claimed_before(work, plan, before) end
  local turns, legend = candidates.turns(work, plan, a[5]), names.legend(work)
  local admitted = admission.admit(work, turns, candidates.reader(work), plan)
  admitted.is_again = admitted:again(turns)
  local parts = take_all(work, plan, admitted.taken, legend)
  move_aside(work, admitted)
  return packed(work, parts, legend, #parts == 0 and next_due_in(work, turns) or nil, admitted)
end)
