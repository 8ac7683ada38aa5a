-- The candidates of a claim (see admission.lua): due jobs of its turns, read in batches, in claim order. Plain ones
-- stay texts; all others become rows.

local candidates = {}

local BEHIND_MOVED = 32  -- jobs that are read at once, at least, where some were moved aside

local function kinds_of(work, texts)
  local kinds = {}
  names.look_up(work, 'K', texts)
  for _, text in ipairs(texts) do
    local kind = names.known(work, 'K', text)
    if kind then kinds[kind] = true end
  end
  return kinds
end

-- The turns of a plan that are not on paused queues, for jobs of these kinds, by their texts. A name that has no number
-- has no jobs either.
function candidates.turns(work, plan, kind_texts)
  local kinds, lanes, turns, open = kinds_of(work, kind_texts), {}, {}, {}
  for i, turn in ipairs(plan.turns) do lanes[i] = turn[1] end
  names.look_up(work, 'L', lanes)
  for _, turn in ipairs(plan.turns) do
    if not work:is_paused(turn[2]) then open[#open + 1] = turn end
  end
  for i, turn in ipairs(open) do
    local lane = names.known(work, 'L', turn[1])
    turns[i] = {
      sets = lane and waiting.sets(work, lane, kinds) or {},
      due_by = work.now_ms - turn[4],
      most = turn[3], span = admission.span(turn[3], plan.want, #open),
      judged = 0, taken = 0, moved = 0, batch = {}, at = 1,
    }
  end
  return turns
end

-- All limits of these jobs, in two commands.
local function load_limits(work, list)
  local scopes, windows = {}, {}
  for _, row in pairs(list) do
    for _, resource in ipairs(row.resources or {}) do scopes[#scopes + 1] = resource[2] end
    for _, id in ipairs(row.rates or {}) do windows[#windows + 1] = id end
    if row.called then scopes[#scopes + 1], windows[#windows + 1] = row.called, row.called end
  end
  limits.load_scopes(work, scopes)
  limits.load_windows(work, windows)
end

local function candidate_of(row, scopes, now_ms)
  local is_limited = row.rates ~= nil or #scopes > 0
  return {
    row = row, bytes = row.bytes, lone = is_limited or not rows.may_run_ahead(row), is_limited = is_limited,
    expired = rows.has_expired(row, now_ms), scopes = scopes,
  }
end

-- Reads a turn's candidates in batches, as many as may be of use.
function candidates.reader(work)
  local of_all = {}  -- what all jobs of a lane and kind need

  local function scopes_of_all(lane, kind)
    local name = lane * 65536 + kind
    local scopes = of_all[name]
    if not scopes then
      scopes = limits.scopes_of(work, { lane = lane, kind = kind })
      of_all[name] = scopes
    end
    return scopes
  end

  -- A member that stands for no live job is left out.
  local function candidates_of(members)
    local batch, numbers, found = {}, {}, {}
    if #members == 0 then return batch end
    for i, member in ipairs(members) do numbers[i] = string.sub(member, 17) end
    for i, text in ipairs(redis.call('HMGET', keys.hot(work.p), unpack(numbers))) do
      local candidate = text and plain.candidate(work, members[i], text)
      if candidate and #scopes_of_all(candidate.shape.lane, candidate.shape.kind) == 0 then
        batch[#batch + 1] = candidate
      elseif text then
        batch[#batch + 1] = rows.adopt(work, tonumber(numbers[i]), text)
        found[#batch] = batch[#batch]
      end
    end
    load_limits(work, found)
    for place, row in pairs(found) do
      local scopes = row.resources and limits.scopes_of(work, row) or scopes_of_all(row.lane, row.kind)
      batch[place] = candidate_of(row, scopes, work.now_ms)
    end
    return batch
  end

  local function fill(turn, left)
    local wanted = math.max(turn.moved > 0 and BEHIND_MOVED or 1, math.min(left, turn.most - turn.taken))
    local members
    repeat
      members = waiting.take(turn.sets, turn.due_by, math.min(wanted, turn.span - turn.judged))
      turn.batch, turn.at = candidates_of(members), 1
    until turn.batch[1] or #members == 0
  end

  return function(turn, left)
    if not turn.batch[turn.at] then fill(turn, left) end
    turn.at = turn.at + 1
    return turn.batch[turn.at - 1]
  end
end
