-- Scopes of one kind, by id.
--
-- arguments: the kind; behind which id, or nil; how many
-- answers:   a list of them, see shown.lua
-- reads:     scopes:<kind>, scopes, line
-- writes:    nothing

act('scopes', {}, function(work, a)
  local ids, items = limits.of_kind(work, keys.scopes_of(work.p, a[1]), a[2], a[3]), {}
  limits.load_scopes(work, ids)
  for i, id in ipairs(ids) do items[i] = shown.scope(work, limits.scope(work, id)) end
  return pack.list(items)
end)
