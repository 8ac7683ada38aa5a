-- The audit trail: one row for one thing that an operator did, and for a job the event that tells of it. A row as it
-- lies in the stream, false for what there is not:
--
--   at(ms) subject display scheme action job(number) generation before after reason command(id) target

local trail = {}

-- Write one row; answers its id. `row`: the job that it is about, or nil. `actor`: subject, display and scheme. `what`
-- has by these names what there is: `generation` (where that is not the job's present one), `before`, `after`,
-- `reason`, `command`, `target`.
function trail.write(work, row, actor, action, what)
  local generation = what.generation or row and row.generation or false
  local id = work:audit({
    work.now_ms, actor[1], actor[2] or false, actor[3] or false, action, row and row.number or false, generation,
    what.before or false, what.after or false, what.reason or false, what.command or false, what.target or false,
  }, row and row.number)
  if row then work:tell({ CONTROLLED, row.number, generation, false, action, false, what.command or false }) end
  return id
end

-- One row for a reader: its id as two numbers, then the fields, the job by its own id.
function trail.shown(work, id, values)
  local counter, index = string.match(id, '^(%d+)-(%d+)$')
  local fields = {}
  for i = 1, 12 do fields[i] = values[i] or nil end
  local job = fields[6] and roster.id(work, fields[6])
  return pack.array(14) .. cmsgpack.pack(tonumber(counter), tonumber(index), unpack(fields, 1, 5)) .. pack.bin(job)
    .. cmsgpack.pack(unpack(fields, 7, 10)) .. pack.bin(fields[11]) .. cmsgpack.pack(fields[12])
end
