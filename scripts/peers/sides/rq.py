"""RQ's jobs, in the Redis that ``REDIS_URL`` names, and the settings of its workers.

``rq worker --config scripts.peers.sides.rq`` serves them; by reading its settings here it has loaded the handlers
before it forks for a job, as its documentation advises.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

import redis
from rq import Queue, Retry  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work

REDIS_URL: Final = os.environ["REDIS_URL"]
QUEUES: Final = ["jobs"]
_RETRIES: Final = 3


def _options(kind: str) -> dict[str, Any]:
    """How a job of this kind is enqueued: nothing is kept of one that has succeeded."""
    if kind in work.LIMITED:
        return {"result_ttl": 0, "timeout": work.LIMIT_S}
    return {"result_ttl": 0, "retry": Retry(max=_RETRIES)}


@contextlib.contextmanager
def _opened() -> Iterator[producing.Producer]:
    with redis.Redis.from_url(REDIS_URL) as client:
        client.ping()
        queue = Queue(*QUEUES, connection=client)

        def one(kind: str, value: Any) -> None:
            options = _options(kind)
            options["job_timeout"] = options.pop("timeout", None)
            queue.enqueue(work.KINDS[kind], value, **options)

        def many(kind: str, values: list[Any]) -> None:
            options = _options(kind)
            queue.enqueue_many([Queue.prepare_data(work.KINDS[kind], (value,), **options) for value in values])

        yield producing.Producer(one, many)


if __name__ == "__main__":
    producing.main(_opened)
