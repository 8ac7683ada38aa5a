-- The kinds that ever had a job.
--
-- arguments: none
-- answers:   their texts, see names.lua
-- reads:     texts
-- writes:    nothing

act('names', {}, function(work) return pack.bins(redis.call('HVALS', keys.texts(work.p, 'K'))) end)
