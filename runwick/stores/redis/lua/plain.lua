-- The short way of a claim for plain jobs: those that wait for their first run, whose payload comes along, and about
-- which there is nothing rare. Most jobs are plain. What a claim makes of one of them it makes of all of its shape (see
-- layout.lua), so it takes the long way once, in pieces, and puts in each one's id, due time and attempt. Nothing but
-- this and `closing` goes past `rows` and `indexes`.

local plain = {}

-- What is known of a shape by one of its rows: lane, kind, size of the payload, whether it may run ahead; or false
-- where jobs of that shape are not plain.
local function known(text)
  local row = layout.unpack(0, text)
  if row.state ~= PENDING or not row.rides or row.apart then return false end
  return { lane = row.lane, kind = row.kind, bytes = row.bytes, lone = not rows.may_run_ahead(row) }
end

-- The candidate (see admission.lua) that a row's text is if it is a plain job's, or nil; once leased, a part of
-- `leased.pack_all`.
function plain.candidate(work, member, text)
  local id, before, due, behind = layout.pieces(text)
  if not id then return nil end
  local shape = work:shape(before, behind)
  if shape.plain == nil then shape.plain = known(text) end
  local own = shape.plain
  if not own then return nil end
  return {
    member = member, text = text, id = id, due = due, shape = own, bytes = own.bytes, lone = own.lone, attempt = nil,
    head = nil,
  }
end

-- What the long way makes of one job of a shape.
local function make(shape, text, legend, lease)
  local row = layout.unpack(0, text)
  row.state, row.lease, row.revision = RUNNING, lease, row.revision + 1
  row.attempts, row.executions = row.attempts + 1, row.executions + 1
  shape.before, shape.behind, shape.rest = layout.alike(layout.pack(row), true)
  shape.head, shape.members = leased.pieces(row, legend), {}
end

-- Lease these candidates, each with its `attempt`, to a worker.
function plain.lease(work, taken, legend, token, worker, till)
  local hot, leases, till_text, shapes = {}, {}, string.format('%d', till), {}
  for i, candidate in ipairs(taken) do
    local shape, attempt, id = candidate.shape, candidate.attempt, candidate.id
    if not shape.members then
      make(shape, candidate.text, legend, { attempt = attempt, token = token, worker = worker, till = till })
      shapes[#shapes + 1] = shape
    end
    local number = string.sub(candidate.member, 17)
    hot[2 * i - 1] = number
    hot[2 * i] = id .. shape.before .. candidate.due .. shape.behind .. attempt .. shape.rest
    leases[2 * i - 1], leases[2 * i] = till_text, number
    shape.members[#shape.members + 1] = candidate.member
    candidate.head = leased.put_together(shape.head, number, id, attempt)
  end
  work:put('HSET', keys.hot(work.p), hot)
  work:put('ZADD', keys.leases(work.p), leases)
  for _, shape in ipairs(shapes) do
    work:put('ZREM', keys.lane(work.p, shape.lane, shape.kind), shape.members)
    work:count(keys.leased(work.p), shape.lane .. ':' .. shape.kind, #shape.members)
  end
end
