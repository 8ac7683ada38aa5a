-- One job as it stands, with its attempts that have ended.
--
-- arguments: the job's id
-- answers:   nil, or [kind, lane, state, code, generation, revision, executions, most executions, created, due while it
--            waits, ended, tenant, size of the payload, expires while it lives, cancel asked for, crashes while it
--            lives, worker, attempt's id and begun mark of who holds it, result, attempts, legend]
--            attempt: [id, generation, number, outcome, code, begun, ended, delay, worker, detail]
-- reads:     j:<id>, hot, h:<number>, o:<id>, texts
-- writes:    nothing

local function attempt(ended, legend)
  return pack.array(10) .. pack.bin(ended.attempt)
    .. cmsgpack.pack(
      ended.generation, ended.number, ended.outcome, legend:note('C', ended.code), ended.begun, ended.ended, ended.delay
    )
    .. pack.bin(ended.worker) .. (ended.detail or pack.none)
end

act('job', {}, function(work, a)
  local row = work:find(a[1])
  if not row then return pack.none end
  local legend, lives, lease, attempts = names.legend(work), rows.is_live(row), row.lease or {}, {}
  for i, ended in ipairs(rows.history(work, row)) do attempts[i] = attempt(ended, legend) end
  local result = row.state == SUCCEEDED and redis.call('GET', keys.result(work.p, row.id))
  legend:note('K', row.kind)
  legend:note('L', row.lane)
  legend:note('T', row.tenant)
  return pack.array(22)
    .. cmsgpack.pack(
      row.kind, row.lane, row.state, not row.lease and legend:note('C', row.code) or nil, row.generation, row.revision,
      row.executions, row.max, row.created, rows.waits(row) and row.due or nil, row.ended, row.tenant, row.bytes,
      lives and row.expires or nil, row.cancel, lives and row.crashes or 0
    )
    .. pack.bin(lease.worker) .. pack.bin(lease.attempt) .. cmsgpack.pack(lease.begun) .. pack.bin(result)
    .. pack.list(attempts) .. legend:packed()
end)
