-- The walk by creation: the roster from a number on downwards. Where states or queues are asked for, only blocks that
-- hold such jobs are looked through: the tallies tell.

local creation = {}

local BLOCKS_MAX = 64                                    -- blocks of one page
local TALLIES_MAX, TALLIED_MAX, WINDOW = 48, 60000, 128  -- tallies worth asking; counts of one page; blocks at once
local LIVE_STATES = 4

-- The first number of a job that was created at this time or later; jobs come in the order of their creation, but for
-- those around a moment at which the server's clock was set back.
function creation.number_since(work, at_ms)
  local low, high = 1, work.meta.jobs + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = roster.of(work, middle)
    if entry and entry.created >= at_ms then high = middle else low = middle + 1 end
  end
  return low
end

-- Which states of the roster are asked for, and which of live jobs where that is not all of them.
local function states_of(states)
  if not states then return nil, nil end
  local of_roster, live, count = {}, {}, 0
  for _, state in ipairs(states) do
    of_roster[roster.state_of(state)] = true
    if state < SUCCEEDED then
      live[state] = true
      count = count + 1
    end
  end
  return of_roster, count > 0 and count < LIVE_STATES and live or nil
end

-- The tallies that tell in which blocks something is; nil where they tell nothing, or are too many to ask.
local function tallies_of(work, seen, states)
  if not states and not seen.lanes then return nil end
  local found = {}
  for lane in pairs(seen.lanes or sight.queues(work)) do
    for state = roster.LIVE, roster.state_of(CANCELLED) do
      if not states or states[state] then found[#found + 1] = keys.tally(work.p, lane, state) end
    end
  end
  return #found <= TALLIES_MAX and found or nil
end

-- From a block on downwards: answers a function that gives block and how many of its jobs count (nil: unknown), and at
-- the end nil and whether there may be more.
local function blocks_from(work, tallies, top, bottom)
  if not tallies then
    local block = top + 1
    return function()
      block = block - 1
      if block >= bottom then return block, nil end
    end
  end
  local from, at, counts, asked = top + 1, 0, {}, 0
  local function fill()
    local fields = {}
    for block = from - 1, math.max(bottom, from - WINDOW), -1 do fields[#fields + 1] = string.format('%d', block) end
    counts = {}
    for i = 1, #fields do counts[i] = 0 end
    for _, key in ipairs(tallies) do
      for i, count in ipairs(redis.call('HMGET', key, unpack(fields))) do
        if count then counts[i] = counts[i] + tonumber(count) end
      end
    end
    asked, at, from = asked + #fields * #tallies, 0, from - #fields
  end
  return function()
    while true do
      at = at + 1
      if counts[at] == nil then
        if from <= bottom then return nil end
        if asked >= TALLIED_MAX then return nil, from end
        fill()
      elseif counts[at] > 0 then
        return from + #counts - at, counts[at]
      end
    end
  end
end

-- The numbers of one block that are shown, descending, as far as the roster tells: of live jobs, and of all; and behind
-- which number it stopped because enough was looked at. `left`: how many of its jobs are in such lanes and states, if
-- that is known.
local function look_through(page, seen, states, text, first, top, bottom, left)
  local live, all, byte, is_timed = {}, {}, string.byte, seen.from or seen.till
  for slot = top, bottom, -1 do
    if left == 0 then break end
    local at = slot * roster.SIZE
    local state = byte(text, at + 17)
    if state and state > 0 and (not states or states[state]) then
      local l1, l2, k1, k2, t1, t2, t3, c1, c2 = byte(text, at + 18, at + 26)
      local lane = l1 * 256 + l2
      if not seen.lanes or seen.lanes[lane] then
        if page.looked == page.most then return live, all, first + slot + 1 end
        page.looked = page.looked + 1
        left = left and left - 1
        local is_live = state == roster.LIVE
        if (is_live or not seen.code or seen.code == c1 * 256 + c2)
          and sight.covers(seen, lane, k1 * 256 + k2, (t1 * 256 + t2) * 256 + t3)
          and (not is_timed or sight.shows(seen, roster.entry(text, at))) then
          all[#all + 1] = first + slot
          if is_live then live[#live + 1] = first + slot end
        end
      end
    end
  end
  return live, all, nil
end

-- Of the numbers of a block, those whose live jobs stand as it is asked for.
local function standing_so(work, seen, live_states, live, all)
  if #live == 0 or not (live_states or seen.code) then return all end
  local kept, is_live, found = {}, {}, {}
  for _, number in ipairs(live) do is_live[number] = true end
  if live_states then live = pages.in_states(work, live, live_states) end
  if seen.code then live = pages.with_code(work, live, seen.code) end
  for _, number in ipairs(live) do kept[number] = true end
  for _, number in ipairs(all) do
    if kept[number] or not is_live[number] then found[#found + 1] = number end
  end
  return found
end

-- Fill a page with numbers below `start`, down to `floor`.
function creation.walk(work, seen, states, page, start, floor)
  local of_roster, live_states = states_of(states)
  if start <= floor then return end
  local top, bottom = roster.block_of(start - 1), roster.block_of(floor)
  local next_block, read = blocks_from(work, tallies_of(work, seen, of_roster), top, bottom), 0
  while true do
    local block, count = next_block()
    if not block then
      if count then page.next = count * roster.BLOCK + 1 end
      return
    end
    local first = block * roster.BLOCK + 1
    if read == BLOCKS_MAX or page.looked == page.most then
      page.next = first + roster.BLOCK
      return
    end
    read = read + 1
    local text = redis.call('GET', keys.block(work.p, block)) or ''
    local from, to = math.min(start - first, roster.BLOCK) - 1, math.max(floor - first, 0)
    local whole = from == roster.BLOCK - 1 and to == 0
    local live, all, cut = look_through(page, seen, of_roster, text, first, from, to, whole and count or nil)
    for _, number in ipairs(standing_so(work, seen, live_states, live, all)) do
      if page:take(number, number) then return end
    end
    if cut then
      page.next = cut
      return
    end
  end
end
