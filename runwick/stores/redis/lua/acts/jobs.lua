-- A page of a list of jobs, the latest first, each as it stands now.
--
-- arguments: the place behind which it begins, as two numbers, or nil; how many; states, or nil for all; the state by
--            whose ends they are ordered, or nil; what is asked for, see sight.lua
-- answers:   { jobs, the place behind which more may follow or nil, legend }; a place as it came
-- reads:     d, n, ends, leases, retrying, hot, j, h, ids, texts
-- writes:    nothing

local function summary(work, legend, number)
  local row = pages.row(work, number)
  if not row then return nil end
  legend:note('K', row.kind)
  legend:note('L', row.lane)
  local is_sound = STATES[row.state] and legend.K[row.kind] and legend.L[row.lane]
  if not is_sound then return nil end
  local lease = row.lease or nil
  return pack.array(16) .. pack.bin(row.id) .. cmsgpack.pack(
    row.kind, row.lane, row.state, not lease and legend:note('C', row.code) or nil,
    row.generation, row.revision, row.executions, row.max, row.created, rows.waits(row) and row.due or nil,
    lease and lease.begun or nil, row.ended, row.cancel, legend:note('T', row.tenant), row.bytes
  )
end

act('jobs', {}, function(work, a)
  local seen = sight.open(work, a[5])
  local page = walks.page(work, seen, a[3], a[4], a[1], a[2])
  local legend, items = names.legend(work), {}
  for _, number in ipairs(page.numbers) do
    local went, item = pcall(summary, work, legend, number)
    if went and item then items[#items + 1] = item end
  end
  local place = page.next
  if type(place) == 'number' then place = { place, 0 } end
  return pack.array(3) .. pack.list(items) .. cmsgpack.pack(place) .. legend:packed()
end)
