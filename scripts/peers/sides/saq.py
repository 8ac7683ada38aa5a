"""SAQ's jobs, in the Redis that ``REDIS_URL`` names.

``saq scripts.peers.sides.saq.settings`` serves them; it has ``CONCURRENCY`` of them in hand, and looks each
``SWEEP_S`` seconds for those that are past their timeout.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from saq import Queue  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work
from scripts.peers.sides.coroutines import suited

_RETRIES: Final = 3
_KEEP_NOTHING: Final = -1

queue = Queue.from_url(os.environ["REDIS_URL"], name="jobs")


def _handler(kind: str, body: Callable[[Any], None]) -> Callable[..., Any]:
    def handler(_context: Any, *, value: Any) -> None:
        body(value)

    return suited(kind, handler)


settings: Final = {
    "queue": queue,
    "functions": [(kind, _handler(kind, body)) for kind, body in work.KINDS.items()],
    "concurrency": int(os.environ.get("CONCURRENCY", "1")),
    "timers": {"sweep": int(os.environ.get("SWEEP_S", "60"))},
}


@contextlib.asynccontextmanager
async def _opened() -> AsyncIterator[producing.Producer]:
    async def one(kind: str, value: Any) -> None:
        if kind in work.LIMITED:
            await queue.enqueue(kind, value=value, ttl=_KEEP_NOTHING, timeout=work.LIMIT_S)
        else:
            await queue.enqueue(kind, value=value, ttl=_KEEP_NOTHING, retries=_RETRIES)

    await queue.connect()
    await queue.count("queued")
    yield producing.Producer(one, None)
    await queue.disconnect()


if __name__ == "__main__":
    producing.main(_opened)
