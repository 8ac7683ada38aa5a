-- Attempts of the last jobs that are asked for, in the order of the jobs.
--
-- arguments: how many jobs; what is asked for, see sight.lua
-- answers:   { runs, legend }; see shown.lua
-- reads:     d, n, hot, j, h, ids, texts, kinds
-- writes:    nothing

local function add(work, legend, items, number)
  local row = rows.of_number(work, number)
  for _, attempt in ipairs(row and rows.history(work, row) or {}) do
    items[#items + 1] = shown.run(legend, row, attempt)
  end
end

act('runs_of_jobs', {}, function(work, a)
  local page = walks.page(work, sight.open(work, a[2]), nil, nil, nil, a[1])
  local legend, items = names.legend(work), {}
  for _, number in ipairs(page.numbers) do pcall(add, work, legend, items, number) end
  return pack.array(2) .. pack.list(items) .. legend:packed()
end)
