-- Ends jobs that wait past their expiry, the longest expired first.
--
-- arguments: how many at most
-- answers:   how many were ended
-- reads:     expiry, hot
-- writes:    expiry, hot, h, j, d, n, w, retrying, line, lined, active, scopes, windows, slots, ends, events, ids,
--            texts

act('expire', { writes = true, frees = true }, function(work, a)
  local numbers = indexes.up_to(keys.expiry(work.p), string.format('%d', work.now_ms), a[1])
  rows.load(work, numbers)
  local ended = 0
  for _, number in ipairs(numbers) do
    local row = rows.live(work, number)
    if row then
      work:close_expired(row)
      ended = ended + 1
    end
  end
  work:call_in()
  return cmsgpack.pack(ended)
end)
