-- Ends attempts in one fenced batch. A claim token that is no longer the row's changes nothing.
--
-- arguments: ways, members and their count, see ending.lua; the attempts' ids, 16 bytes each, one after the other
-- answers:   for each member 0: done, 1: done but cancelled, 2: not yours; or one number alone: the place of the member
--            whose job's state does not allow what it says, and nothing is written
-- reads:     hot, costly; of what was settled before h, d, j
-- writes:    hot, h, j, o, d, n, leases, leased, cancels, retrying, expiry, w, active, scopes, windows, slots, line,
--            lined, costly, ends, events, ids, texts

local DONE, CANCELLED_INSTEAD, NOT_YOURS = 0, 1, 2

-- For an attempt that holds nothing: done when an earlier sending has landed and only its answer was lost.
local function landed(work, s, attempt)
  local row = rows.of_number(work, s.job % 2 ^ 40)
  for _, ended in ipairs(row and rows.history(work, row) or {}) do
    local as_said = ended.outcome == s.way.outcome or (s.way.instead and ended.outcome == s.way.instead[1])
    if ended.attempt == attempt and as_said then return true end
  end
  return false
end

act('settle', { writes = true, frees = true }, function(work, a)
  local settlements = ending.unpack(a[1], a[2], a[3])
  local plain_ones = closing.find(work, settlements)
  local held, answers = ending.held(work, settlements, plain_ones), {}
  for i, s in ipairs(settlements) do
    if held[i] and ending.is_barred(held[i], s) then return cmsgpack.pack(i) end
    -- Before anything changes: what comes twice in one batch has not landed before.
    if plain_ones[i] then
      answers[i] = DONE
    elseif not held[i] then
      answers[i] = landed(work, s, string.sub(a[4], i * 16 - 15, i * 16)) and DONE or NOT_YOURS
    end
  end
  for i, s in ipairs(settlements) do
    if held[i] then answers[i] = ending.finish(work, held[i], s) and CANCELLED_INSTEAD or DONE end
  end
  closing.finish(work, settlements, plain_ones)
  work:call_in()
  return cmsgpack.pack(answers)
end)
