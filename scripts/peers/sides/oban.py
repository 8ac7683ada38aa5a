"""Oban's jobs; the database is the one that the ``PG…`` variables name.

``oban start --cron-modules scripts.peers.sides.oban`` serves them: that option is how it is told a module to import.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from oban import Oban, worker  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work


def _declared(kind: str, body: Callable[[Any], None]) -> Any:
    class Handler:
        async def process(self, job: Any) -> None:
            body(job.args["value"])

    if kind in work.LIMITED:
        Handler.timeout = lambda self, job: work.LIMIT_S  # type: ignore[attr-defined]
    Handler.__qualname__ = kind
    return worker(queue="default")(Handler)


HANDLERS = {kind: _declared(kind, body) for kind, body in work.KINDS.items()}


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[producing.Producer]:
    """Connect to dispatch."""
    async with await Oban.create_pool("application_name=bench") as pool:
        oban = Oban(pool=pool)

        async def one(kind: str, value: Any) -> None:
            await oban.enqueue(HANDLERS[kind].new({"value": value}))

        async def many(kind: str, values: list[Any]) -> None:
            await oban.enqueue_many([HANDLERS[kind].new({"value": value}) for value in values])

        yield producing.Producer(one, many)


if __name__ == "__main__":
    from scripts.peers.sides.oban import opened as _opened  # a job's name contains that of its module

    producing.main(_opened)
