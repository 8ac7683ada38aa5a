-- arguments: how many attempts      answers: how many are read again of as many that were packed
operator('attempts', {}, function(a)
  local one = layout.pack_attempt({ attempt = 'id', generation = 1, number = 1, outcome = 0, ended = 1 })
  return cmsgpack.pack(#layout.unpack_attempts(string.rep(one, a[1])))
end)
