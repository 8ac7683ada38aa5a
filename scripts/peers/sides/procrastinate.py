"""Procrastinate's jobs; the database is the one that the ``PG…`` variables name.

``procrastinate --app=scripts.peers.sides.procrastinate.app worker`` serves them.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import procrastinate  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work

app = procrastinate.App(connector=procrastinate.PsycopgConnector())


def _declared(kind: str, body: Callable[[Any], None]) -> Any:
    async def handler(value: Any) -> None:
        body(value)

    return app.task(name=kind, retry=10)(handler)


HANDLERS = {kind: _declared(kind, body) for kind, body in work.KINDS.items()}


async def retry_stalled(context: Any, timestamp: int) -> None:
    """Let jobs run again whose worker has told no sign of life for long."""
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.retry_job(job)


_task = app.task(name="retry_stalled", queueing_lock="retry_stalled", pass_context=True)
app.periodic(cron="* * * * *")(_task(retry_stalled))


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[producing.Producer]:
    """Connect to dispatch."""
    async with app.open_async():

        async def one(kind: str, value: Any) -> None:
            await HANDLERS[kind].defer_async(value=value)

        async def many(kind: str, values: list[Any]) -> None:
            await HANDLERS[kind].batch_defer_async(*({"value": value} for value in values))

        yield producing.Producer(one, many)


if __name__ == "__main__":
    producing.main(opened)
