-- A page of a list under way, and how live jobs stand that may be on it.
--
-- A page takes numbers and where they stand, at most `limit` of them, until it is full or has looked at enough, for
-- nobody else is served meanwhile. `next` is then the place behind which the walk goes on; nil where nothing follows. A
-- place is a number, or for an end { write, which of that write's ends }.

local pages = { SINGLE_MAX = 2000 }        -- entries of one page, where they are read one by one

local LOOKED_MAX, NARROW_MAX = 5000, 1000  -- others; where a type or a code is asked for

local Page = {}
Page.__index = Page

function pages.new(seen, limit)
  local most = (seen.kinds or seen.code) and NARROW_MAX or LOOKED_MAX
  return setmetatable({ numbers = {}, places = {}, limit = limit, looked = 0, most = most }, Page)
end

-- Entries are read one by one: it looks at no more of those.
function Page:reads_singly() self.most = math.min(self.most, pages.SINGLE_MAX) end

-- Take a job; answers whether the page is full and one more was met.
function Page:take(number, place)
  if #self.numbers == self.limit then
    self.next = self.places[self.limit]
    return true
  end
  self.numbers[#self.numbers + 1], self.places[#self.places + 1] = number, place
  return false
end

-- A row that cannot be read hides itself alone.
function pages.row(work, number)
  local went, row = pcall(rows.of_number, work, number)
  return went and row or nil
end

-- Of some live jobs of one block, those in these states: no rows are made of them.
function pages.in_states(work, numbers, states)
  local fields, found = {}, {}
  for i, number in ipairs(numbers) do fields[i] = string.format('%d', number) end
  for i, text in ipairs(redis.call('HMGET', keys.hot(work.p), unpack(fields))) do
    if text and states[layout.state(text) or 0] then found[#found + 1] = numbers[i] end
  end
  return found
end

-- Of some live jobs, those that wait for that reason.
function pages.with_code(work, numbers, code)
  local found = {}
  for _, number in ipairs(numbers) do
    local row = pages.row(work, number)
    if row and not row.lease and row.code == code then found[#found + 1] = number end
  end
  return found
end
