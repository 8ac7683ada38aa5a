-- What became of an operation, as its dispatch answered.
--
-- arguments: the operation's id; the id of the job that it creates
-- answers:   [0, job's id, match, drift], or nil
-- reads:     reused:<operation>, j:<id>, hot
-- writes:    nothing

act('resolve', {}, function(work, a)
  local answer = uniqueness.kept(work, a[1])
  if answer then return uniqueness.packed(0, answer) end
  local row = work:find(a[2])
  if not row or row.operation then return pack.none end
  return uniqueness.packed(0, { job = row.id })
end)
