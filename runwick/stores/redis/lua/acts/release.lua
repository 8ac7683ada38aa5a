-- Gives attempts back that provably never reached their handler, as if they had not been claimed: charge and number are
-- taken back, holds are freed. One that somebody cancelled meanwhile ends instead.
--
-- arguments: attempts [job, outward; claim token]
-- answers:   of each in its order: 0 not the caller's, 1 done, 2 its job ended as cancelled
-- reads:     hot, and what calling in reads
-- writes:    hot, leases, leased, w:<lane>:<kind>, scopes; where a job ends all that an end writes; and what calling
--            in writes

local NOT_YOURS, DONE, CANCELS = 0, 1, 2

local function give_back(work, row)
  if rows.begun(row) then row.executions = row.executions - 1 end
  row.attempts = row.attempts - 1
  if rows.cancel_stands(row) then
    work:close_cancelled(row)
    return CANCELS
  end
  row.revision = row.revision + 1
  work:wait(row, rows.waits_as(row))
  return DONE
end

act('release', { writes = true, frees = true }, function(work, a)
  local answers, numbers = {}, {}
  for i, attempt in ipairs(a[1]) do numbers[i] = attempt[1] % 2 ^ 40 end
  rows.load(work, numbers)
  for i, attempt in ipairs(a[1]) do
    local row = work:held(attempt[1], attempt[2])
    answers[i] = cmsgpack.pack(row and give_back(work, row) or NOT_YOURS)
  end
  work:call_in()
  return pack.list(answers)
end)
