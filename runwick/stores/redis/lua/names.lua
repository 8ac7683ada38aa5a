-- Long names that many jobs share, kept once and known by small numbers: lanes 'L', kinds 'K', tenants 'T', codes 'C',
-- retry settings 'P'. A number is never given to another text, and as there is room for no more in rows and the roster,
-- there are MOST of a class. Who needs another one is refused; but for codes, which applications make up themselves: an
-- attempt must be able to end, so all further ones are kept as NOT_KEPT.
--
--   lane:  id of the queue's scope (16 bytes) .. rank of the priority (0, 1, 2) .. queue
--   kind:  id of the type's scope (16 bytes) .. version .. ':' .. name

local names = {}

local MOST = { L = 65535, K = 65535, T = 16777215, C = 65535, P = 65535 }
local NOT_KEPT = 'code_not_kept'

-- The number of a text; one that is new gets the next, which `names.commit` writes.
function names.id(work, class, text)
  if not text then return nil end
  local known = names.known(work, class, text)
  if known then return known end
  local made = work.names_made[class]
  if not made then
    made = { next = redis.call('HLEN', keys.ids(work.p, class)) + 1 }
    work.names_made[class] = made
  end
  local id = made.next
  if class == 'C' and id >= MOST.C and text ~= NOT_KEPT then return names.id(work, 'C', NOT_KEPT) end
  if id > MOST[class] then work:refuse('RWFULL ' .. MOST[class] .. ' ' .. class) end
  made.next = id + 1
  made[#made + 1] = { text, id }
  work.ids[class][text], work.texts[class][id] = id, text
  return id
end

-- The number of a text that was kept before; nil for any other.
function names.known(work, class, text)
  local cache = work.ids[class]
  if cache[text] == nil then
    cache[text] = tonumber(redis.call('HGET', keys.ids(work.p, class), text)) or false
  end
  return cache[text] or nil
end

-- Read the numbers of many texts at once, for `known`.
function names.look_up(work, class, texts)
  local cache, wanted = work.ids[class], {}
  for _, text in ipairs(texts) do
    if cache[text] == nil then wanted[#wanted + 1] = text end
  end
  if #wanted == 0 then return end
  for i, id in ipairs(redis.call('HMGET', keys.ids(work.p, class), unpack(wanted))) do
    cache[wanted[i]] = tonumber(id) or false
  end
end

-- The text of a number.
function names.text(work, class, id)
  if not id then return nil end
  local cache = work.texts[class]
  if cache[id] == nil then cache[id] = redis.call('HGET', keys.texts(work.p, class), id) end
  return cache[id]
end

-- A lane's queue, its rank and the id of the queue's scope.
function names.lane(work, id)
  local text = names.text(work, 'L', id)
  return string.sub(text, 18), tonumber(string.sub(text, 17, 17)), string.sub(text, 1, 16)
end

-- The id of the scope of a kind's job type.
function names.type_scope(work, kind) return string.sub(names.text(work, 'K', kind), 1, 16) end

function names.commit(work)
  for class, made in pairs(work.names_made) do
    local ids, texts = {}, {}
    for _, pair in ipairs(made) do
      ids[#ids + 1], ids[#ids + 2] = pair[1], pair[2]
      texts[#texts + 1], texts[#texts + 2] = pair[2], pair[1]
    end
    work:put('HSET', keys.ids(work.p, class), ids)
    work:put('HSET', keys.texts(work.p, class), texts)
  end
end

-- What a reader must know to understand the numbers of an answer: five lists of [number, text], in the order L K T C P.
local Legend = {}
Legend.__index = Legend

function names.legend(work) return setmetatable({ work = work, L = {}, K = {}, T = {}, C = {}, P = {} }, Legend) end

-- Note a number that an answer holds, and hand it on.
function Legend:note(class, id)
  if id and not self[class][id] then self[class][id] = names.text(self.work, class, id) or nil end
  return id
end

function Legend:packed()
  local lists = {}
  for place, class in ipairs({ 'L', 'K', 'T', 'C', 'P' }) do
    local items = {}
    for id, text in pairs(self[class]) do
      items[#items + 1] = pack.array(2) .. cmsgpack.pack(id) .. pack.bin(text)
    end
    lists[place] = pack.list(items)
  end
  return pack.list(lists)
end
