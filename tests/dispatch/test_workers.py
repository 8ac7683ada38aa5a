"""Dispatching from the handlers of a worker in the same process, while it claims and settles there."""

import asyncio
import datetime
from collections.abc import Iterator

import pytest

from runwick import Job, JobState, ProducerOptions, Runwick, WorkerOptions
from runwick.declarations.pools import Pool

PATIENCE = datetime.timedelta(seconds=60)
TREES = 16


class Plain(Job):
    height: int


class Awaiting(Job):
    height: int


@pytest.fixture(params=[1, 2])
def rw(request: pytest.FixtureRequest, store_url: str) -> Iterator[Runwick]:
    """As many runs at once as an application has by default, and fewer calls than runs."""
    producer = ProducerOptions(max_concurrent_calls=request.param, admission_wait=PATIENCE)
    app = Runwick("trees", store=store_url, producer=producer, worker=WorkerOptions(max_outstanding_attempts=16))
    app.job("trees.plain")(Plain)
    app.job("trees.awaiting")(Awaiting)

    def plain(job: Plain) -> None:
        if job.height:
            app.dispatch_many([Plain(job.height - 1), Awaiting(job.height - 1)])

    async def awaiting(job: Awaiting) -> None:
        if job.height:
            await asyncio.gather(
                app.dispatch_async(Plain(job.height - 1)), app.dispatch_async(Awaiting(job.height - 1))
            )

    app.handler(plain)
    app.handler(awaiting)
    yield app
    app.close()


def test_f082_handlers_that_dispatch_never_starve_the_worker(rw: Runwick) -> None:
    height = 2
    jobs = TREES * (2 ** (height + 1) - 1)

    async def work() -> int:
        async with rw.worker(pools=[Pool("main", concurrency=16)]) as worker:
            roots = await rw.dispatch_many_async([Plain(height), Awaiting(height)] * (TREES // 2))
            for receipt in roots.receipts:
                assert (await rw.wait_async(receipt, timeout=PATIENCE)).state is JobState.SUCCEEDED
            while worker.tally.succeeded < jobs:
                assert worker.failure is None
                await asyncio.sleep(0.01)
            return worker.tally.failed

    async def within_the_time() -> int:
        return await asyncio.wait_for(work(), PATIENCE.total_seconds())

    assert asyncio.run(within_the_time()) == 0
