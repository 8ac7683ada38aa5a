-- Every key of the store, spelled once. `p` is an application's prefix, "rw:{name}:", so that all its keys lie in one
-- hash slot. A job's own number counts from 1 within its application.

local keys = { store = 'rw:store', applications = 'rw:applications', work = 'rw:work', asked = 'rw:asked' }

function keys.prefix(application) return 'rw:{' .. application .. '}:' end
function keys.meta(p) return p .. 'meta' end

-- What was asked for, and once the job has ended, all that is known of it; a payload too large to ride along; a result.
function keys.job(p, id) return p .. 'j:' .. id end
function keys.payload(p, id) return p .. 'p:' .. id end
function keys.result(p, id) return p .. 'o:' .. id end

-- Live jobs: number -> row. Attempts of a live job that have ended, oldest first.
function keys.hot(p) return p .. 'hot' end
function keys.past(p, number) return p .. 'h:' .. number end

-- The roster: who is who, by number, in blocks of fixed size; and how many of a block are of a lane and a state.
function keys.block(p, block) return p .. 'd:' .. block end
function keys.tally(p, lane, state) return p .. 'n:' .. lane .. ':' .. state end

-- Where jobs wait: in a lane by due time, per kind, or in a limit's line by job id, per lane.
function keys.lane(p, lane, kind) return p .. 'w:' .. lane .. ':' .. kind end
function keys.kinds(p) return p .. 'kinds' end
function keys.line(p, limit, lane) return p .. 'line:' .. limit .. lane end

-- Sets of live jobs, by number.
function keys.retrying(p) return p .. 'retrying' end
function keys.expiry(p) return p .. 'expiry' end
function keys.leases(p) return p .. 'leases' end
function keys.cancels(p) return p .. 'cancels' end

-- Of a lane and a kind: how many jobs are leased; by number and due time those that stand in lines, and those in the
-- lane that a worker has put off (between two executions, or promised a place of a limit).
function keys.leased(p) return p .. 'leased' end
function keys.lined(p, lane, kind) return p .. 'b:' .. lane .. ':' .. kind end
function keys.postponed(p, lane, kind) return p .. 'later:' .. lane .. ':' .. kind end

-- The ends of jobs that did not succeed, in order.
function keys.ends(p, state) return p .. 'ends:' .. state end

function keys.claim(p, token) return p .. 'claim:' .. token end
function keys.ids(p, class) return p .. 'ids:' .. class end
function keys.texts(p, class) return p .. 'texts:' .. class end
function keys.queues(p) return p .. 'queues' end
function keys.scopes(p) return p .. 'scopes' end
function keys.windows(p) return p .. 'windows' end
function keys.scopes_of(p, kind) return p .. 'scopes:' .. kind end
function keys.windows_of(p, kind) return p .. 'windows:' .. kind end
function keys.lined_limits(p) return p .. 'lined:limits' end
function keys.slots(p, window) return p .. 'slots:' .. window end
function keys.active(p) return p .. 'active' end
function keys.unique(p) return p .. 'unique' end
function keys.unique_until(p) return p .. 'unique:until' end
function keys.reused(p, operation) return p .. 'reused:' .. operation end
function keys.commands(p) return p .. 'commands' end
function keys.audit(p) return p .. 'audit' end
function keys.audited(p, number) return p .. 'audited:' .. number end
function keys.events(p) return p .. 'events' end
function keys.workers(p) return p .. 'workers' end
function keys.looks(p) return p .. 'looks' end
function keys.looks_asked(p) return p .. 'looks:asked' end
function keys.costly(p, by) return p .. 'costly:' .. by end
