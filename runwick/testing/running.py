"""Runs an application's jobs inside a test: a store in memory, the real worker, the inline backend, no process.

::

    with running(rw) as run:
        receipt = rw.dispatch(MakeThumbnail("a.png"))
        run.until_idle()
        assert rw.get(receipt).state == "succeeded"

Dispatching, claiming, retrying and settling are the real thing; only the store, the clock and the processes are not.
Limits hold as well: what a rate window keeps out is not due until the test moves the time, and `why` says so::

    with running(rw) as run:
        receipts = [rw.dispatch(SendMail(to)) for to in ("a", "b", "c")]  # at most two a minute
        run.until_idle()
        assert rw.why(receipts[2]).reasons[-1].code == "rate_full"
        run.advance(datetime.timedelta(minutes=1))
        run.until_idle()
        assert rw.get(receipts[2]).state == "succeeded"
"""

import asyncio
import contextlib
import datetime
from collections.abc import Iterator

from runwick.app.runwick import Runwick
from runwick.config.serving import served_pools
from runwick.execution.inline import InlineBackend
from runwick.execution.invoke import Invoker
from runwick.runtime.ambient import SystemIds
from runwick.stores.memory.store import MemoryStore
from runwick.telemetry.bus import Bus
from runwick.testing.clock import SteppingClock
from runwick.worker.engine import Worker, nothing_due
from runwick.worker.pools import ServedPool
from runwick.worker.tally import Tally


class Running:
    """An application whose jobs run when the test says so. Made by `running`."""

    def __init__(self, rw: Runwick, store: MemoryStore, clock: SteppingClock) -> None:
        self._rw = rw
        self._store = store
        self._clock = clock

    def until_idle(self) -> Tally:
        """Run everything that is due, in this thread, until nothing is; answers what happened.

        A job that failed and waits for its retry is not due: `advance` the time first. Handlers' errors do not come
        out here; they are the outcome of their attempts, as on a real worker.
        """
        return asyncio.run(self.until_idle_async())

    async def until_idle_async(self) -> Tally:
        """`until_idle` for a test that is itself async."""
        catalog = self._rw.catalog
        bus = Bus()
        invoker = Invoker(catalog, clock=self._clock, record_usage=False, alone=False)
        served, _ = served_pools(catalog.pools, catalog.queues, None)
        pools = [
            ServedPool.of(
                pool,
                InlineBackend(
                    invoker,
                    pool.name,
                    concurrency=pool.concurrency,
                    clock=self._clock,
                    cancellation_grace_s=self._rw.worker_options.cancellation_grace.total_seconds(),
                    cleanup_budget_s=self._rw.worker_options.cleanup_budget.total_seconds(),
                ),
            )
            for pool in served
        ]
        worker = Worker(
            self._store,
            pools,
            application=catalog.application,
            kinds=frozenset(catalog.decodable),
            limits=catalog.limits,
            options=self._rw.worker_options,
            clock=self._clock,
            dice=self._rw.dice,
            ids=SystemIds(),
            bus=bus,
        )
        try:
            await worker.run(until=nothing_due)
        finally:
            await invoker.close_async()
        return worker.tally

    def advance(self, by: datetime.timedelta) -> None:
        """Move the store's clock on, so that delayed jobs and retries come due."""
        self._clock.advance(by)


@contextlib.contextmanager
def running(rw: Runwick) -> Iterator[Running]:
    """Give `rw` a store in memory for the length of the block; its own store is neither opened nor touched.

    Raises:
        ConfigurationError: the application's declarations are wrong, all of it at once.
    """
    _ = rw.catalog
    clock = SteppingClock()
    store = MemoryStore(clock=clock, ids=SystemIds())
    with rw.store_replaced(store):
        yield Running(rw, store, clock)
