-- Pauses or resumes a queue, or changes a capacity, if it still stands as the operator saw it.
--
-- arguments: command id, fingerprint; actor's subject, display, scheme; reason or nil; the queue, or the scope's id;
--            the revision expected; the new capacity or nil; what it is about, for the audit trail
-- answers:   [whether this was answered before, [code or nil, revision or nil, before or nil, after or nil]]; nil where
--            the command id was used for something else
-- reads:     commands, queues, scopes, lined:limits
-- writes:    queues, scopes, windows, slots, hot, w, line, lined, commands, audit

local VALUES = { pause = 'paused', resume = 'open' }

-- How the queue or the scope stands: revision and value; nil when there is none.
local function stands(work, action, key)
  if action == 'set_capacity' then
    local scope = limits.scope(work, key)
    if not scope then return nil end
    return scope.revision, string.format('%d', scope.capacity)
  end
  local queue = work:queue(key)
  if not queue then return nil end
  return queue[1], queue[2] and VALUES.pause or VALUES.resume
end

local LIMITS_MAX = 2000

-- Call for the room of all limits: a queue is open again whose jobs may stand in their lines. Where there are more of
-- them than can be gone through while nobody else is served, the others are left to who tends the lines.
local function call_in_everywhere(work)
  local calling = lines.calling(work)
  for _, id in ipairs(limits.with_a_line(work, nil, LIMITS_MAX)) do
    local limit = limits.of(work, id)
    if limits.is_scope(limit) then
      calling:into_scope(limit, limits.room(limit))
    else
      calling:tend_window(limit)
    end
  end
  work:take_all_calls(calling)
end

local function change(work, action, key, revision, capacity)
  if action == 'set_capacity' then
    local scope, calling = limits.scope(work, key), lines.calling(work)
    scope.revision = revision + 1
    calling:into_scope(scope, limits.resize(scope, capacity))
    work:take_all_calls(calling)
    return
  end
  work:set_queue(key, revision + 1, action == 'pause' and work.now_ms)
  if action == 'resume' then
    work.made_due = true
    call_in_everywhere(work)
  end
end

local function packed(code, revision, before, after)
  return pack.array(4) .. cmsgpack.pack(code, revision, before, after)
end

local function judge(work, action, a)
  local key, expected, capacity = a[7], a[8], a[9]
  local revision, before = stands(work, action, key)
  if not revision then return packed('not_found', nil, nil, nil) end
  local after = VALUES[action] or string.format('%d', capacity)
  if expected ~= revision then return packed('stale_revision', revision, before, nil) end
  if after == before then return packed('invalid_state', revision, before, nil) end
  change(work, action, key, revision, capacity)
  trail.write(work, nil, { a[3], a[4], a[5] }, action, {
    command = a[1], reason = a[6], before = before, after = after, target = a[10],
  })
  local answer = packed(nil, revision + 1, before, after)
  commands.keep(work, a[1], a[2], answer)
  return answer
end

local function register(action)
  act(action, { writes = true, late = true, frees = true }, function(work, a)
    local kept = commands.kept(work, a[1], a[2])
    if kept == false then return pack.none end
    if kept then return pack.array(2) .. cmsgpack.pack(true) .. kept end
    work:admit()
    return pack.array(2) .. cmsgpack.pack(false) .. judge(work, action, a)
  end)
end

register('pause')
register('resume')
register('set_capacity')
