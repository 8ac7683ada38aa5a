"""PgQueuer's jobs; the database is the one that the ``PG…`` variables name.

``pgq run scripts.peers.sides.pgqueuer:worker`` serves them.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg  # type: ignore[import-not-found, unused-ignore]
from pgqueuer import Job, PgQueuer, Queries  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work


@contextlib.asynccontextmanager
async def worker() -> AsyncIterator[PgQueuer]:
    """What ``pgq run`` runs."""
    connection = await asyncpg.connect()
    queuer = PgQueuer.from_asyncpg_connection(connection)
    for kind, body in work.KINDS.items():
        _declare(queuer, kind, body)
    yield queuer
    await connection.close()


def _declare(queuer: PgQueuer, kind: str, body: Callable[[Any], None]) -> None:
    async def handler(job: Job) -> None:
        body(json.loads(job.payload))

    queuer.entrypoint(kind)(handler)


@contextlib.asynccontextmanager
async def _opened() -> AsyncIterator[producing.Producer]:
    connection = await asyncpg.connect()
    queries = Queries.from_asyncpg_connection(connection)

    async def one(kind: str, value: Any) -> None:
        await queries.enqueue(kind, json.dumps(value).encode())

    async def many(kind: str, values: list[Any]) -> None:
        await queries.enqueue([kind] * len(values), [json.dumps(value).encode() for value in values], [0] * len(values))

    yield producing.Producer(one, many)
    await connection.close()


if __name__ == "__main__":
    producing.main(_opened)
