"""What acts cost on Redis: calls and commands within them by ``INFO commandstats``, bytes by the append-only file."""

from pathlib import Path
from typing import Any, Final

from runwick.runtime.ambient import SystemIds
from runwick.stores.redis.address import address_of
from runwick.stores.redis.library import library
from runwick.stores.redis.migrate import migrate
from scripts.servers.redis import RedisServer
from tests.hot_paths.acts import Readings, acts, acts_system_calls, opened
from tests.hot_paths.drain import drained

_CALLS: Final = ("cmdstat_fcall", "cmdstat_fcall_ro")
_OURS: Final = ("cmdstat_info", "cmdstat_auth", "cmdstat_select", "cmdstat_client", "cmdstat_hello", "cmdstat_ping")
"""What connections do, and this one asks."""


def redis_paths(folder: Path) -> dict[str, float]:
    """By ``redis ACT: COUNT``; `folder` is empty."""
    with RedisServer() as server, server.client() as client:

        def read() -> Readings:
            info: Any = client.info("everything")
            stats = {name: stat["calls"] for name, stat in info.items() if name.startswith("cmdstat_")}
            return {
                "calls": sum(stats.get(name, 0) for name in _CALLS),
                "commands within": sum(n for name, n in stats.items() if name not in (*_CALLS, *_OURS)),
                "appended bytes per job": info["aof_current_size"],
            }

        watched, traced, emptied = map(server.url, range(3))
        for url in (watched, traced, emptied):
            migrate(address_of(url), SystemIds(), library())
        with opened(watched) as rw:
            costs = acts(rw, read)
        costs |= acts_system_calls(traced, folder) | drained(emptied, folder, read)
    return {f"redis {name}": cost for name, cost in costs.items()}
