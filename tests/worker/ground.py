"""A worker's parts on a store in memory: the test turns each loop by hand and moves the time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from runwick.config.options import WorkerOptions
from runwick.contracts.attempts import Kind, Lane, WorkerPresence
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.contracts.stores import Act, JobRecord
from runwick.stores.memory.store import MemoryStore
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.claimer import Claimer, Intake
from runwick.worker.finalizer import Finalizer
from runwick.worker.heartbeat import Heartbeat, Watchdog
from runwick.worker.recovery import Recovery
from runwick.worker.registry import Registry
from runwick.worker.tally import Tally
from runwick.worker.timings import timings_of
from tests.ambient import FakeClock, FakeDice, FakeIds
from tests.worker.backend import HandBackend

T = TypeVar("T")

APPLICATION = "reports"
KIND = Kind("reports.build", 1)
LANE = Lane("reports", Priority.MEDIUM)


class FaultyStore(MemoryStore):
    """A store in memory whose next acts fail as told: one error for each call, by the act's name."""

    def __init__(self, clock: FakeClock, ids: FakeIds) -> None:
        super().__init__(clock=clock, ids=ids)
        self.faults: dict[str, list[Exception]] = {}
        self.faults_after: dict[str, list[Exception]] = {}
        """Raised after the act was applied: its answer is lost."""
        self.meanwhile: dict[str, Callable[[], None]] = {}
        """Called between an act's application and its answer."""
        self.holds_up: dict[str, Callable[[], Awaitable[None]]] = {}
        """Awaited between an act's application and its answer."""
        self.refuses: Callable[[Settlement], bool] = lambda settlement: False
        """Whether the content of this settlement cannot be stored."""
        self.calls: list[str] = []

    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        if any(map(self.refuses, settlements)):
            raise SettlementRejected("settlement_rejected", "one of these cannot be stored")
        return super().settle(settlements)

    async def run_async(self, act: Act[T]) -> T:
        self.calls.append(act.name)
        if waiting := self.faults.get(act.name):
            raise waiting.pop(0)
        answer = await super().run_async(act)
        if happens := self.meanwhile.get(act.name):
            happens()
        if waits := self.holds_up.get(act.name):
            await waits()
        if waiting := self.faults_after.get(act.name):
            raise waiting.pop(0)
        return answer


class Ground:
    """All parts of one worker, and everything its bus said."""

    def __init__(self, *, free: int = 2, ahead: int = 0) -> None:
        self.clock, self.dice, self.ids = FakeClock(), FakeDice(), FakeIds()
        self.store = FaultyStore(self.clock, self.ids)
        self.backend = HandBackend(free, ahead)
        self.bus = Bus()
        self.said: list[Any] = []
        for event in (events.LeaseLost, events.SettlementDelayed, events.SettlementRefused, events.Recovered):
            self.bus.listen(event, self.said.append)
        self.tally = Tally(self.bus)
        self.registry = Registry()
        self.timings = timings_of(WorkerOptions())
        self.finalizer = Finalizer(
            self.store,
            self.backend,
            self.registry,
            self.timings,
            clock=self.clock,
            dice=self.dice,
            bus=self.bus,
            writes=lambda: self.claimer.join(),
        )
        self.presence = WorkerPresence(
            worker=self.ids.ordered(),
            application=APPLICATION,
            host="host-a",
            process=1,
            queues=["reports"],
            executors=free,
        )
        self.claimer = Claimer(
            self.store,
            self.backend,
            self.registry,
            Intake(APPLICATION, self.presence.worker, [LANE], frozenset({KIND})),
            self.timings,
            clock=self.clock,
            dice=self.dice,
            ids=self.ids,
            bus=self.bus,
            release=self.finalizer.release,
            found_nothing=lambda: None,
            claims=self.finalizer.join,
        )
        self.recovery = Recovery(self.store, APPLICATION, dice=self.dice, bus=self.bus)
        self.heartbeat = Heartbeat(
            self.store,
            self.registry,
            self.presence,
            self.timings,
            clock=self.clock,
            dice=self.dice,
            bus=self.bus,
            recovery_due=self.recovery.due,
            stop_runs=self.backend.stop_runs,
        )
        self.watchdog = Watchdog(self.registry, self.timings, clock=self.clock, lose=self.heartbeat.lose)
        self.backend.sink = Sinks(self)
        self.backend.started = True

    def dispatch(self, count: int = 1, *, payload: bytes = b"{}", **policy: Any) -> list[Receipt]:
        commands = [
            Command(
                operation_id=self.ids.ordered(),
                job_id=self.ids.ordered(),
                deadline_ms=self.clock.now_ms() + 300_000,
                application=APPLICATION,
                kind=KIND,
                lane=LANE,
                policy=JobPolicy(**policy),
                payload=payload,
            )
            for _ in range(count)
        ]
        return self.store.run(self.store.dispatch(commands))

    def job(self, receipt: Receipt) -> JobRecord:
        record = self.store.run(self.store.job(APPLICATION, receipt.job))
        assert record is not None
        return record

    def states(self, receipts: list[Receipt]) -> list[str]:
        return [self.job(receipt).state.value for receipt in receipts]


class Sinks:
    """What the engine does with a backend's reports."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def completed(self, completions: Any) -> None:
        self._ground.finalizer.complete(completions)

    def unstarted(self, attempts: Any) -> None:
        self._ground.finalizer.release(attempts)

    def room_changed(self) -> None: ...

    def failed(self, reason: str) -> None:
        raise AssertionError(reason)
