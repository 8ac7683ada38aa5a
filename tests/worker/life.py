"""A whole worker on a store in memory and the real clock, whose runs the test ends by hand."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from runwick.config.options import WorkerOptions
from runwick.contracts.attempts import Lane
from runwick.contracts.controls import ControlAction, ControlAnswer
from runwick.contracts.dispatching import Receipt
from runwick.contracts.limits import DeclaredLimits, ScopeNeed
from runwick.contracts.stores import JobRecord, Outlook
from runwick.runtime.ambient import SystemClock
from runwick.telemetry.bus import Bus
from runwick.worker.engine import Until, Worker
from runwick.worker.pools import ServedPool
from tests.ambient import FakeClock, FakeDice, FakeIds
from tests.worker.backend import HandBackend
from tests.worker.ground import APPLICATION, KIND, LANE, control, dispatch, hear
from tests.worker.store import FaultyStore

PATIENCE_S = 20.0


def milliseconds(number: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=number)


QUICK = WorkerOptions(
    control_request_timeout=milliseconds(50),
    control_retry_initial_backoff=milliseconds(1),
    control_retry_max_backoff=milliseconds(10),
    renewal_interval=milliseconds(40),
    renewal_jitter=milliseconds(0),
    recovery_scan_interval=milliseconds(20),
    recovery_scan_jitter=milliseconds(0),
    safety_poll_interval=milliseconds(50),
    lease_watchdog_interval=milliseconds(10),
)
"""Every loop goes round many times a second."""


class Life:
    """One worker and what it has; `lanes` are those of each pool."""

    def __init__(
        self,
        *,
        free: int = 2,
        ahead: int = 0,
        lanes: Sequence[Sequence[Lane]] = ((LANE,),),
        options: WorkerOptions | None = None,
        scopes: Sequence[ScopeNeed] = (),
        worker_id: bytes | None = None,
    ) -> None:
        self.clock, self.ids = FakeClock(), FakeIds()
        self.store = FaultyStore(self.clock, self.ids)
        self.backends = [HandBackend(free, ahead) for _ in lanes]
        self.backend = self.backends[0]
        self.bus = Bus()
        self.said = hear(self.bus)
        self.pools = [
            ServedPool(f"pool-{number}", backend, {lane.queue: 1 for lane in served}, free)
            for number, (backend, served) in enumerate(zip(self.backends, lanes, strict=True), 1)
        ]
        self.worker = Worker(
            self.store,
            self.pools,
            application=APPLICATION,
            kinds=frozenset({KIND}),
            options=options or WorkerOptions(),
            clock=SystemClock(),
            dice=FakeDice(),
            ids=self.ids,
            bus=self.bus,
            limits=DeclaredLimits(tuple(scopes)),
            worker_id=worker_id,
            grade="watched",
        )

    def live(self, script: Callable[["Life"], Awaitable[Any]], until: Until | None = None) -> Outlook | None:
        """Let it live beside the script, to its end."""

        async def both() -> Outlook | None:
            run = asyncio.create_task(self.worker.run(until=until))
            await script(self)
            return await asyncio.wait_for(run, PATIENCE_S)

        return asyncio.run(both())

    def dispatch(self, count: int = 1, **options: Any) -> list[Receipt]:
        return dispatch(self.store, self.clock, self.ids, count, **options)

    def job(self, receipt: Receipt) -> JobRecord:
        record = self.store.run(self.store.job(APPLICATION, receipt.job))
        assert record is not None
        return record

    def states(self, receipts: list[Receipt]) -> list[str]:
        return [self.job(receipt).state.value for receipt in receipts]

    def heard(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.said if isinstance(event, kind)]

    def control(self, receipt: Receipt, action: ControlAction = ControlAction.CANCEL) -> ControlAnswer:
        return control(self.store, self.ids, self.job(receipt), action)

    async def handed_over(self, count: int, pool: int = 0) -> None:
        """Wait until the pool's backend holds so many."""
        await until(lambda: len(self.backends[pool].held) >= count, f"{count} attempts in pool {pool}")


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE_S:g} s for {what}") from None
