-- Attempts under way, as Python reads them (leased.py).
--
--   attempt: number, job id, attempt id, claim token, kind, lane, tenant or 0, policy, attempts, executions,
--            generation, begun, may run ahead, crashes, unstarted, size of the payload, created, holds, fences, body,
--            payload
--
-- The body is as Python packed it. A payload that lies apart comes behind it, where it is given.

local leased = {}

-- What all attempts have is written as MessagePack in fixed places, for a claim answers many: a value behind the byte
-- that tells its type, as one number where both fit into one.
local FIXED = '>I3BI8I2c16I2c16I2c16I3I3I5I3I5I3I5BBI3I3I5BI8B'
local LIST_OF_21, LONG, BYTES_16, SHORT, INT = 0xdc0015, 0xcf, 0xc410, 0xcd0000, 0xce00000000
local NO, YES = 0xc2, 0xc3
local EMPTY = '\144'  -- a list

-- Of what it holds, the tokens that resources gave it, in the order declared: lists of key and token.
local function fences_of(row)
  if not row.lease.fences then return EMPTY end
  local values, items = {}, {}
  for _, fence in ipairs(row.lease.fences) do values[fence[1]] = fence[2] end
  for _, resource in ipairs(row.resources or {}) do
    if values[resource[2]] then items[#items + 1] = cmsgpack.pack({ resource[1], values[resource[2]] }) end
  end
  return pack.list(items)
end

-- What all attempts have.
local function head_of(row, legend)
  local lease, begun = row.lease, row.state == RUNNING
  local holds = lease.holds and #lease.holds or 0
  local before = begun and row.executions - 1 or row.executions  -- as the claim judged it: before the charge
  local runs_ahead = holds == 0 and not row.rates and row.max - before >= 2
  legend:note('K', row.kind)
  legend:note('L', row.lane)
  legend:note('P', row.policy)
  legend:note('T', row.tenant)
  return struct.pack(
    FIXED, LIST_OF_21, LONG, legend.work:outward(row.number), BYTES_16, row.id, BYTES_16, lease.attempt, BYTES_16,
    lease.token, SHORT + row.kind, SHORT + row.lane, INT + (row.tenant or 0), SHORT + row.policy, INT + row.attempts,
    SHORT + row.executions, INT + row.generation, begun and YES or NO, runs_ahead and YES or NO, SHORT + row.crashes,
    SHORT + row.unstarted, INT + row.bytes, LONG, row.created, holds
  )
end

-- The head of one attempt as pieces, and that of another one that differs in number, id and attempt alone.
function leased.pieces(row, legend)
  local head = head_of(row, legend)
  return { string.sub(head, 1, 7), string.sub(head, 13, 14), string.sub(head, 31, 32), string.sub(head, 49) }
end

function leased.put_together(pieces, number, id, attempt)
  return pieces[1] .. struct.pack('>I5', number) .. pieces[2] .. id .. pieces[3] .. attempt .. pieces[4]
end

function leased.pack(row, legend, body, payload)
  return head_of(row, legend) .. fences_of(row) .. body .. pack.bin(payload)
end

-- An attempt as a part of `pack_all`.
function leased.part(row, legend)
  return { id = row.id, head = head_of(row, legend), fences = fences_of(row), is_apart = row.rides and row.apart }
end

-- Many, in their order, with the payloads that come along with a claim. Parts: id head fences(packed, or nil)
-- is_apart(its payload lies apart, and comes along).
function leased.pack_all(work, parts)
  if #parts == 0 then return EMPTY end
  local wanted, apart, texts, n = {}, {}, { pack.array(#parts) }, 1
  for i, part in ipairs(parts) do wanted[i] = keys.job(work.p, part.id) end
  for i, part in ipairs(parts) do
    if part.is_apart then
      wanted[#wanted + 1] = keys.payload(work.p, part.id)
      apart[i] = #wanted
    end
  end
  local values = redis.call('MGET', unpack(wanted))
  for i, part in ipairs(parts) do
    texts[n + 1], texts[n + 2], texts[n + 3] = part.head, part.fences or EMPTY, rows.body_of(values[i])
    texts[n + 4] = apart[i] and pack.bin(values[apart[i]]) or pack.none
    n = n + 4
  end
  return table.concat(texts)
end
