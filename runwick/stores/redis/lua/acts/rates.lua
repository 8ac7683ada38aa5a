-- Rate windows of one kind, by id.
--
-- arguments: the kind; behind which id, or nil; how many
-- answers:   a list of them, see shown.lua
-- reads:     windows:<kind>, windows, slots, line
-- writes:    nothing

act('rates', {}, function(work, a)
  local ids, items = limits.of_kind(work, keys.windows_of(work.p, a[1]), a[2], a[3]), {}
  limits.load_windows(work, ids)
  for i, id in ipairs(ids) do items[i] = shown.rate(work, limits.window(work, id)) end
  return pack.list(items)
end)
