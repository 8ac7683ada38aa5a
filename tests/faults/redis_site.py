"""A database in which every act has something to do, as it is again after each spoiling, and what is in it."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import pytest

from runwick.config.options import RedisOptions
from runwick.stores.redis.address import address_of
from runwick.stores.redis.store import RedisStore
from scripts.servers.redis import RedisServer
from tests.ambient import FakeClock
from tests.conformance.redis_places import RedisDatabase, timed_library
from tests.faults.redis_proxy import RedisProxy
from tests.faults.sqlite_site import SameIds
from tests.faults.stage import Make, staged

State = dict[bytes, Any]

_READS: Final = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"list": ("LRANGE", 0, -1),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    b"stream": ("XRANGE", "-", "+"),
}


class Site:
    """A database to spoil, reached through a proxy."""

    def __init__(self, server: RedisServer, proxy: RedisProxy) -> None:
        self.proxy: Final = proxy
        self.database: Final = RedisDatabase(server)
        bench = self.database.bench()
        self.stage = staged(bench)
        bench.store.close()
        self._client = self.database.client
        keys = sorted(self._client.keys("*"))
        self._kinds: dict[bytes, bytes] = {}
        self._saved = [(key, self._client.pttl(key), self._client.dump(key)) for key in keys]

    def restore(self) -> None:
        """Make everything as it was."""
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.flushdb()
            for key, left_ms, dump in self._saved:
                pipeline.restore(key, max(0, left_ms), dump)
            pipeline.execute()

    def store(self) -> RedisStore:
        """Its store, through the proxy."""
        parts = urlsplit(self.database.url)
        behind = urlunsplit(parts._replace(netloc=parts.netloc.rpartition(":")[0] + f":{self.proxy.port}"))
        return RedisStore(
            address_of(behind),
            options=RedisOptions(),
            concurrent_calls=2,
            clock=FakeClock(),
            ids=SameIds(),
            functions=timed_library(),
        )

    def first_write(self, store: RedisStore) -> None:
        """Open it, and do something that would write if there were anything to do."""
        store.check()
        store.run(store.depart(self.stage.bench.presence(worker=bytes(16))))

    def state(self) -> State:
        """All that is in the database, but for how many writes that were."""
        keys = sorted(self._client.keys("*"))
        for key in set(keys) - self._kinds.keys():  # a key's kind never changes
            self._kinds[key] = self._client.type(key)
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                command, *rest = _READS[self._kinds[key]]
                pipeline.execute_command(command, key, *rest)
            state = dict(zip(keys, pipeline.execute(), strict=True))
        for key in keys:
            if key.endswith(b":meta"):
                del state[key][b"writes"]
        return state

    def close(self) -> None:
        self.database.close()


@pytest.fixture(scope="module")
def site(redis_server: RedisServer) -> Iterator[Site]:
    with RedisProxy(redis_server.port) as proxy:
        site = Site(redis_server, proxy)
        yield site
        site.close()


class Undisturbed(NamedTuple):
    """What an act does when nothing fails."""

    before: State
    first: Any
    """Its answer."""
    after: State
    second: Any
    """Its answer when it is sent again, which changes nothing."""


def undisturbed(site: Site, make: Make) -> Undisturbed:
    site.restore()
    before = site.state()
    store = site.store()
    first, after, second = store.run(make(store)), site.state(), store.run(make(store))
    assert site.state() == after
    store.close()
    return Undisturbed(before, first, after, second)
