"""What PgQueuer is given to do, through its public interface: the job of `noop`, which does nothing.

Runs in the peers' environment and knows nothing of ours; the database is the one that the ``PG…`` variables name.

* ``python -m scripts.benchmarks.peers.pgqueuer_side JOBS PAYLOAD`` fills the queue;
* ``pgq run scripts.benchmarks.peers.pgqueuer_side:worker`` serves it, once its standard input has ended.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import asyncpg  # type: ignore[import-not-found, unused-ignore]
from pgqueuer import Job, PgQueuer, Queries  # type: ignore[import-not-found, unused-ignore]

ENTRYPOINT = "nothing"
FILL_BATCH = 1_000


async def nothing(job: Job) -> None:
    pass


@contextlib.asynccontextmanager
async def worker() -> AsyncIterator[PgQueuer]:
    """What ``pgq run`` runs: loaded and connected, it waits for the start that all workers share."""
    connection = await asyncpg.connect()
    queuer = PgQueuer.from_asyncpg_connection(connection)
    queuer.entrypoint(ENTRYPOINT)(nothing)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    yield queuer
    await connection.close()


async def fill(jobs: int, payload: bytes) -> None:
    """Queue so many jobs, in batches."""
    connection = await asyncpg.connect()
    queries = Queries.from_asyncpg_connection(connection)
    for done in range(0, jobs, FILL_BATCH):
        batch = min(FILL_BATCH, jobs - done)
        await queries.enqueue([ENTRYPOINT] * batch, [payload] * batch, [0] * batch)
    await connection.execute("VACUUM (ANALYZE) pgqueuer")
    await connection.close()


if __name__ == "__main__":
    asyncio.run(fill(int(sys.argv[1]), sys.argv[2].encode()))
