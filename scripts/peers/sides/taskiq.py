"""TaskIQ's jobs; the broker is the Redis that ``REDIS_URL`` names.

``taskiq worker scripts.peers.sides.taskiq:broker`` serves them; it reads ``PREFETCH`` messages at once.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any, Final

from taskiq_redis import RedisStreamBroker  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work
from scripts.peers.sides.coroutines import suited

IDLE_TIMEOUT_S: Final = 10
"""After how long without an acknowledgement a message may be given to another worker: longer than any job here, and
than the jobs take that a worker has read before it."""
_BEGINNING: Final = "0"

broker = RedisStreamBroker(
    os.environ["REDIS_URL"],
    queue_name="jobs",
    consumer_id=_BEGINNING,
    idle_timeout=1_000 * IDLE_TIMEOUT_S,
    unacknowledged_lock_timeout=IDLE_TIMEOUT_S,
    xread_count=int(os.environ.get("PREFETCH", "1")),
)


def _limit(kind: str) -> dict[str, int]:
    return {"timeout": work.LIMIT_S} if kind in work.LIMITED else {}


_tasks: Final = {
    kind: broker.task(task_name=kind, **_limit(kind))(suited(kind, body)) for kind, body in work.KINDS.items()
}


@contextlib.asynccontextmanager
async def _opened() -> AsyncIterator[producing.Producer]:
    async def one(kind: str, value: Any) -> None:
        await _tasks[kind].kiq(value)

    await broker.startup()
    yield producing.Producer(one, None)
    await broker.shutdown()


if __name__ == "__main__":
    producing.main(_opened)
