"""The smallest acts there are, on a list of marks: the driver knows nothing of jobs, so these do."""

import datetime
from collections.abc import Callable
from typing import Any, Final

import msgspec

from runwick.config.options import RedisOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.stores import Act
from runwick.runtime.ambient import SystemClock
from runwick.stores.redis import packed
from runwick.stores.redis.address import address_of
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.driver import Driver
from runwick.stores.redis.library import Library
from tests.redis.asking import execute

APPLICATION: Final = "shop"

MARKS: Final = Library("""
local function gate(p, id, known)
  local store = redis.call('HMGET', 'rw:store', 'id', 'revision')
  if not store[1] then return 'RWNOSTORE -' end
  if tonumber(store[2]) ~= 1 then return 'RWREVISION ' .. store[2] end
  if id ~= store[1] then
    return 'RWIDENTITY ' .. string.gsub(store[1], '.', function(c) return string.format('%02x', string.byte(c)) end)
  end
  local writes = tonumber(redis.call('HGET', p .. 'meta', 'writes') or '0')
  if writes < tonumber(known) then return 'RWHISTORY ' .. writes end
end

local function mark(name, flags, body)
  local function answer(keys, arguments)
    local refusal = gate(keys[1], arguments[1], arguments[2])
    if refusal then return redis.error_reply(refusal) end
    local packed = cmsgpack.pack(body(keys[1], cmsgpack.unpack(arguments[3])))
    local writes = tonumber(redis.call('HGET', keys[1] .. 'meta', 'writes') or '0')
    return string.char(0x93) .. cmsgpack.pack(writes, tonumber(redis.call('TIME')[1]) * 1000) .. packed
  end
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = answer, flags = flags })
end

mark('add', {}, function(p, a)
  redis.call('HINCRBY', p .. 'meta', 'writes', 1)
  redis.call('RPUSH', p .. 'marks', a[1])
  return redis.call('LLEN', p .. 'marks')
end)
mark('names', { 'no-writes' }, function(p) return redis.call('LRANGE', p .. 'marks', 0, -1) end)
mark('echo', { 'no-writes' }, function(_, a) return a[1] end)
mark('spin', { 'no-writes' }, function() while true do end end)
mark('mistake', {}, function() return nil + 1 end)
mark('wreck', {}, function(p) return redis.call('LLEN', p .. 'meta') end)
mark('fail', {}, function(_, a) error({ err = a[1] }) end)
redis.register_function(LIBRARY .. '_refuse', function(_, arguments)
  return redis.error_reply(cmsgpack.unpack(arguments[3])[1])
end)
redis.register_function({
  function_name = LIBRARY .. '_permitted', flags = { 'no-writes' }, callback = function() return 'OK' end,
})
mark('tell', {}, function(_, a) return redis.call('PUBLISH', a[1], a[2]) end)
""")


def a_driver(
    url: str,
    *,
    limit_ms: int = 20_000,
    calls: int = 4,
    clock: Clock | None = None,
    recheck_s: float = 300,
    library: Library = MARKS,
) -> Driver:
    options = RedisOptions(
        command_timeout=datetime.timedelta(milliseconds=limit_ms),
        profile_recheck_interval=datetime.timedelta(seconds=recheck_s),
    )
    return Driver(address_of(url), options, concurrent_calls=calls, clock=clock or SystemClock(), library=library)


def doing(
    *calls: tuple[str, tuple[Any, ...]],
    name: str = "do",
    reads_only: bool = False,
    application: str = APPLICATION,
) -> Act[Any]:
    """These functions one after the other, all but the last as preparations; answers what the last one does."""

    def course() -> Calls[Any]:
        answer: Any = None
        for place, (function, arguments) in enumerate(calls, 1):
            packed_answer = yield Call(function, application, packed.arguments(*arguments), place < len(calls))
            answer = msgspec.msgpack.decode(packed_answer)
        return answer

    return Act(name, course, reads_only=reads_only)


def add(mark: str, act: str = "add") -> Act[int]:
    """Write one mark; answers how many there are."""
    return doing(("add", (mark,)), name=act)


def names() -> Act[list[str]]:
    """What was written, in its order."""
    return doing(("names", ()), name="names", reads_only=True)


def clients(url: str, purpose: str = "runwick", flag: str = "") -> list[str]:
    """The ids of the drivers' connections in this database whose purpose begins so, and that have that flag."""
    database = url.rpartition("/")[2]
    lines = bytes(execute(url, "CLIENT", "LIST")).decode().splitlines()
    shown = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
    return [
        one["id"] for one in shown if one["db"] == database and one["name"].startswith(purpose) and flag in one["flags"]
    ]


def end_clients(url: str, purpose: str = "runwick") -> int:
    """End the drivers' connections from the other side; answers how many."""
    return sum(execute(url, "CLIENT", "KILL", "ID", number) for number in clients(url, purpose))


def waiting(url: str) -> Callable[[], object]:
    """Whether the server lets one of the drivers' commands wait."""
    return lambda: clients(url, flag="b")
