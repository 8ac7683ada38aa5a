-- MessagePack by hand where cmsgpack cannot do it: arrays in which nil keeps its place, and bytes that are no text.
-- Python reads what `pack.bin` wrote as bytes; cmsgpack itself cannot read that, so what Lua reads again is packed as
-- text alone.

local pack = { none = '\192' }

-- The head of an array of n items.
function pack.array(n)
  if n < 16 then return string.char(0x90 + n) end
  if n < 65536 then return '\220' .. struct.pack('>I2', n) end
  return '\221' .. struct.pack('>I4', n)
end

-- An array of items that are packed already.
function pack.list(items) return pack.array(#items) .. table.concat(items) end

-- Bytes, or nil.
function pack.bin(bytes)
  if not bytes then return pack.none end
  local n = #bytes
  if n < 256 then return '\196' .. string.char(n) .. bytes end
  if n < 65536 then return '\197' .. struct.pack('>I2', n) .. bytes end
  return '\198' .. struct.pack('>I4', n) .. bytes
end

-- A list of bytes.
function pack.bins(list)
  local items = {}
  for i, bytes in ipairs(list) do items[i] = pack.bin(bytes) end
  return pack.list(items)
end

-- Whether one text of bytes comes before another. `<` goes by the server's locale.
function pack.precedes(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
