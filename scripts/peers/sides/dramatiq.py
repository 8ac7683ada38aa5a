"""Dramatiq's jobs; the broker is the Redis that ``REDIS_URL`` names.

``dramatiq scripts.peers.sides.dramatiq`` serves them.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

import dramatiq  # type: ignore[import-not-found, unused-ignore]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work

HEARTBEAT_TIMEOUT_S: Final = 10
"""After how long without a word a worker is held to be gone and its messages are given out again."""
MAINTENANCE_CHANCE: Final = 10_000
"""Of a million commands, how many look for workers that are gone; one in a hundred."""

broker = RedisBroker(
    url=os.environ["REDIS_URL"],
    heartbeat_timeout=1_000 * HEARTBEAT_TIMEOUT_S,
    maintenance_chance=MAINTENANCE_CHANCE,
)
dramatiq.set_broker(broker)
_LIMITED: Final = {"time_limit": 1_000 * work.LIMIT_S, "max_retries": 0}
_actors: Final = {
    kind: dramatiq.actor(body, actor_name=kind, **(_LIMITED if kind in work.LIMITED else {}))
    for kind, body in work.KINDS.items()
}


@contextlib.contextmanager
def _opened() -> Iterator[producing.Producer]:
    def one(kind: str, value: Any) -> None:
        _actors[kind].send(value)

    broker.client.ping()
    yield producing.Producer(one, None)
    broker.close()


if __name__ == "__main__":
    producing.main(_opened)
