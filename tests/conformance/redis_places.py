"""Where the suite keeps Redis stores: one database whose time a test moves, emptied for each bench."""

import functools
from pathlib import Path
from typing import Any, Final

import redis

import runwick.stores.redis
from runwick.config.options import RedisOptions
from runwick.runtime.ambient import SystemIds
from runwick.stores.redis.address import address_of
from runwick.stores.redis.administer import RedisAdministration
from runwick.stores.redis.library import Library, library
from runwick.stores.redis.migrate import migrate
from runwick.stores.redis.store import RedisStore
from scripts.servers.redis import RedisServer
from tests.ambient import FakeClock
from tests.conformance.ground import Bench
from tests.redis.recount import recounted

_CLOCK: Final = Path(runwick.stores.redis.__file__).with_name("lua") / "clock.lua"
_TIME_OF_THE_TEST: Final = """
local function server_ms() return tonumber(redis.call('GET', 'test:now_ms')) end
"""


@functools.cache
def timed_library(functions: Library | None = None) -> Library:
    """This release's functions, or others that are made of them, but for the time: they read that of the test."""
    _, _, content = (functions or library()).text.split("\n", 2)
    clock = _CLOCK.read_text()
    assert content.count(clock) == 1
    return Library(content.replace(clock, _TIME_OF_THE_TEST))


class RedisDatabase:
    """A database of a Redis server, to be closed. One bench at a time is in it.

    Args:
        server: where it is.
        functions: to call, but for the time; by default this release's.
    """

    def __init__(self, server: RedisServer, functions: Library | None = None) -> None:
        self.url: Final = server.url()
        self.client: Final[Any] = server.client()
        self._server: Final = server
        self._library: Final = timed_library(functions)

    def bench(self) -> Bench:
        """An empty store; `Bench.store` is to be closed."""
        self.client.flushdb()
        clock, ids = _RedisClock(self.client), SystemIds()
        address, functions = address_of(self.url), self._library
        migrate(address, ids, functions)

        def opened() -> RedisStore:
            return self.store(self.url, clock)

        def take_capabilities() -> None:
            for key in self.client.keys("rw:{*}:meta"):
                self.client.hset(key, "capabilities", "")

        return Bench("redis", opened(), clock, self.administration(self.url), opened, take_capabilities)

    def store(self, url: str, clock: FakeClock | None = None) -> RedisStore:
        """What is there, through this URL."""
        return RedisStore(
            address_of(url),
            options=RedisOptions(),
            concurrent_calls=2,
            clock=clock or FakeClock(),
            ids=SystemIds(),
            functions=self._library,
        )

    def administration(self, url: str) -> RedisAdministration:
        """What its operator does, through this URL."""
        return RedisAdministration(address_of(url), SystemIds(), self._library)

    def recount(self) -> list[str]:
        """Where what is written down of jobs differs from the jobs, in all applications."""
        applications = [name.decode() for name in self.client.hkeys("rw:applications")]
        return [difference for name in applications for difference in recounted(self._server, name)]

    def close(self) -> None:
        self.client.close()


class _RedisClock(FakeClock):
    """A clock that moves the time of the functions too."""

    def __init__(self, client: "redis.Redis") -> None:
        super().__init__()
        self._client = client
        self.advance_ms(0)

    def advance_ms(self, milliseconds: int) -> None:
        super().advance_ms(milliseconds)
        self._client.set("test:now_ms", self.now_ms())
