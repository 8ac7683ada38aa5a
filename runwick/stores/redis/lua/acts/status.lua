-- How the store stands, for its operator.
--
-- arguments: how long after it was last seen a worker counts, ms
-- answers:   see operating.lua
-- reads:     rw:store, rw:applications; of every application meta, leases, workers
-- writes:    nothing

operator('status', {}, function(a) return operating.answer(operating.look(a[1])) end)
