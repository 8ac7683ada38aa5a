-- The states of a job by number, in the order in which Python lists them.

local PENDING, RESERVED, RUNNING, RETRYING, SUCCEEDED, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6, 7
local STATES = { 'pending', 'reserved', 'running', 'retrying', 'succeeded', 'failed', 'cancelled' }
