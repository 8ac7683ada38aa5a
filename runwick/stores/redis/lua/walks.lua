-- Walks: in which order a list meets the jobs that it may show, the latest first and never all of them.
--
--   by_end    the ends of one kind, from the last one
--   busy      reserved, running or retrying jobs, where they are few, by number
--   creation  the roster from the latest number on, see creation.lua

local walks = {}

local PIECE = 250  -- ends that are read at once
local UNDONE = 4   -- so many entries more counts a job that was read for nothing

-- The numbers of those in these states and the sets that hold them, descending; nil where they are too many.
local function busy_ones(work, states, start)
  local wanted, found = {}, {}
  for _, state in ipairs(states) do
    if state ~= RESERVED and state ~= RUNNING and state ~= RETRYING then return nil end
    wanted[state] = true
  end
  if wanted[RESERVED] or wanted[RUNNING] then
    if redis.call('ZCARD', keys.leases(work.p)) > pages.SINGLE_MAX then return nil end
    for _, text in ipairs(redis.call('ZRANGE', keys.leases(work.p), 0, -1)) do
      local number = tonumber(text)
      if number < start then found[#found + 1] = { number, true } end
    end
  end
  if wanted[RETRYING] then
    local key, below, count = keys.retrying(work.p), string.format('(%d', start), pages.SINGLE_MAX + 1
    for _, text in ipairs(redis.call('ZRANGE', key, below, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, count)) do
      found[#found + 1] = { tonumber(text), false }
    end
  end
  table.sort(found, function(a, b) return a[1] > b[1] end)
  return found, wanted[RESERVED] == wanted[RUNNING] and {} or wanted
end

local function busy(work, seen, page, found, wanted, floor)
  for _, each in ipairs(found) do
    local number, is_leased = each[1], each[2]
    if number < floor then return end
    if page.looked == page.most then
      page.next = number + 1
      return
    end
    page.looked = page.looked + 1
    local entry = roster.of(work, number)
    local is_shown = entry and sight.shows(seen, entry)
    if is_shown and (seen.code or is_leased and next(wanted)) then
      local row = pages.row(work, number)
      is_shown = row and (not next(wanted) or wanted[row.state])
        and (not seen.code or not row.lease and row.code == seen.code)
    end
    if is_shown and page:take(number, number) then return end
  end
end

-- Whether a job still stands as it ended there.
local function stands_so(work, number, state, counter)
  local row = pages.row(work, number)
  return row and row.state == state and row.place == counter
end

local function by_end(work, seen, state, page, start)
  local key, before = keys.ends(work.p, state), start and '(' .. start[1] .. '-' .. start[2] or '+'
  local last
  while true do
    local piece = redis.call('XREVRANGE', key, before, '-', 'COUNT', PIECE)
    for _, item in ipairs(piece) do
      local counter, index = string.match(item[1], '^(%d+)-(%d+)$')
      local number, place = tonumber(item[2][2]), { tonumber(counter), tonumber(index) }
      if page.looked >= page.most then
        page.next = last
        return
      end
      page.looked, last = page.looked + 1, place
      local entry = roster.of(work, number)
      if entry and entry.state == roster.state_of(state) and sight.shows(seen, entry) then
        if not stands_so(work, number, state, place[1]) then
          page.looked = page.looked + UNDONE
        elseif page:take(number, place) then
          return
        end
      end
    end
    if #piece < PIECE then return end
    before = '(' .. piece[#piece][1]
  end
end

-- The page that `seen` and these states show behind a place; nil is in front of all. `ended`: the state by whose ends
-- the jobs are ordered, or nil.
function walks.page(work, seen, states, ended, start, limit)
  local page = pages.new(seen, limit)
  if sight.is_empty(seen) then return page end
  if ended then
    page:reads_singly()
    by_end(work, seen, ended, page, start)
    return page
  end
  local floor = seen.from and creation.number_since(work, seen.from) or 1
  local from = math.min(start and start[1] or math.huge, work.meta.jobs + 1)
  if seen.till then from = math.min(from, creation.number_since(work, seen.till)) end
  local found, wanted
  if states then found, wanted = busy_ones(work, states, from) end
  if found then
    page:reads_singly()
    busy(work, seen, page, found, wanted, floor)
  else
    creation.walk(work, seen, states, page, from, floor)
  end
  return page
end
