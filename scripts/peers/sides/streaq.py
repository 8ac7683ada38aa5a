"""streaQ's jobs, in the Redis that ``REDIS_URL`` names.

``streaq run scripts.peers.sides.streaq:worker`` serves them; it has ``CONCURRENCY`` of them in hand and fetches as
many again.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any, Final

from streaq import Worker  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work
from scripts.peers.sides.coroutines import suited

IDLE_TIMEOUT_S: Final = 10
"""After how long without a word from its worker a task is given to another one."""

worker: Final = Worker(
    os.environ["REDIS_URL"],
    queue_name="jobs",
    concurrency=int(os.environ.get("CONCURRENCY", "1")),
    idle_timeout=IDLE_TIMEOUT_S,
    anyio_kwargs={"use_uvloop": True},
)


def _declared(kind: str) -> Any:
    limit_s = work.LIMIT_S if kind in work.LIMITED else None
    return worker.task(suited(kind, work.KINDS[kind]), name=kind, silent=True, ttl=0, timeout=limit_s)


_tasks: Final = {kind: _declared(kind) for kind in work.KINDS}


@contextlib.asynccontextmanager
async def _opened() -> AsyncIterator[producing.Producer]:
    async def one(kind: str, value: Any) -> None:
        await _tasks[kind].enqueue(value)

    async def many(kind: str, values: list[Any]) -> None:
        await worker.enqueue_many([_tasks[kind].enqueue(value) for value in values])

    async with worker:
        await worker.queue_size()
        yield producing.Producer(one, many)


if __name__ == "__main__":
    producing.main(_opened)
