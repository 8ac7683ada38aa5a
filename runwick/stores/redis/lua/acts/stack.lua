-- The stack of an attempt that somebody asked for.
--
-- arguments: the attempt's id
-- answers:   its text, or nil
-- reads:     looks
-- writes:    nothing

act('stack', {}, function(work, a) return cmsgpack.pack(looks.answer(work, a[1])) end)
