-- The runs that cost most.
--
-- arguments: by what, `cpu` or `rss`; how many
-- answers:   a list of them, as they were kept (ending.lua)
-- reads:     costly
-- writes:    nothing

act('costliest', {}, function(work, a)
  if a[2] < 1 then return pack.array(0) end
  return pack.list(redis.call('ZRANGE', keys.costly(work.p, a[1]), 0, string.format('%d', a[2] - 1), 'REV'))
end)
