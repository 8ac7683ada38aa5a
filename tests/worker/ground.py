"""A worker's parts on a store in memory: the test turns each loop by hand and moves the time."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from runwick.config.options import WorkerOptions
from runwick.contracts.attempts import Kind, Lane, WorkerPresence
from runwick.contracts.controls import (
    ControlAction,
    ControlAnswer,
    ControlCommand,
    JobTarget,
    ManagementActor,
    SteerAction,
    SteerCommand,
)
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import StoreHistoryBroken
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.contracts.stores import JobRecord
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.parts import Parts
from runwick.worker.pools import ServedPool
from runwick.worker.tally import Tally
from runwick.worker.timings import timings_of
from tests.ambient import FakeClock, FakeDice, FakeIds
from tests.worker.backend import HandBackend
from tests.worker.store import FaultyStore

APPLICATION = "reports"
KIND = Kind("reports.build", 1)
LANE = Lane("reports", Priority.MEDIUM)
OTHER_LANE = Lane("mails", Priority.MEDIUM)

IMPATIENT = WorkerOptions(control_request_timeout=datetime.timedelta(milliseconds=20))
"""For calls that hang: real time passes until they are given up."""

HEARD = (
    events.LeaseLost,
    events.SettlementDelayed,
    events.SettlementRefused,
    events.MovedAside,
    events.LimitDrifted,
    events.LimitsMended,
    events.LinesMoved,
    events.Recovered,
    events.Expired,
    events.PredecessorRecovered,
    events.Released,
    events.EndedUnbegun,
    events.AttemptAsked,
    events.StoreCallFailed,
    events.StoreCallAnswered,
    events.ClaimsRefused,
    events.ClaimsAdmitted,
    events.HistoryBroken,
    events.LoopFailed,
)


def hear(bus: Bus) -> list[Any]:
    """Everything that a bus will say of trouble."""
    said: list[Any] = []
    for event in HEARD:
        bus.listen(event, said.append)
    return said


def dispatch(
    store: FaultyStore,
    clock: FakeClock,
    ids: FakeIds,
    count: int = 1,
    *,
    lane: Lane = LANE,
    payload: bytes = b"{}",
    expires_at_ms: int | None = None,
    scopes: Sequence[ScopeNeed] = (),
    rates: Sequence[RateNeed] = (),
    **policy: Any,
) -> list[Receipt]:
    """Store so many jobs."""
    operations = [ids.ordered() for _ in range(2 * count)][::2]  # of neighbours the jobs would change places
    commands = [
        Command(
            operation_id=operation,
            job_id=job_of_operation(operation),
            deadline_ms=clock.now_ms() + 300_000,
            application=APPLICATION,
            kind=KIND,
            lane=lane,
            policy=JobPolicy(**policy),
            payload=payload,
            expires_at_ms=expires_at_ms,
            scopes=tuple(scopes),
            rates=tuple(rates),
        )
        for operation in operations
    ]
    receipts = store.run(store.dispatch(commands))
    return [receipt for receipt in receipts if isinstance(receipt, Receipt)]


def control(store: FaultyStore, ids: FakeIds, job: JobRecord, action: ControlAction) -> ControlAnswer:
    """An operator does something to one job."""
    command = ControlCommand(
        action=action,
        command_id=ids.ordered(),
        application=APPLICATION,
        actor=ManagementActor("ops", "Ops", "service"),
        reason=None,
        targets=[JobTarget(job.job_id, job.generation, job.revision)],
    )
    (answer,) = store.run(store.control(command)).answers
    assert answer.code is None
    return answer


def pause(store: FaultyStore, ids: FakeIds, queue: str) -> None:
    """An operator pauses a queue that nobody paused before."""
    command = SteerCommand(
        action=SteerAction.PAUSE,
        command_id=ids.ordered(),
        application=APPLICATION,
        actor=ManagementActor("ops", "Ops", "service"),
        reason=None,
        kind=LimitKind.QUEUE,
        key=queue,
        expected_revision=0,
    )
    assert store.run(store.steer(command)).code is None


class Ground:
    """All parts of one worker, and everything its bus said."""

    def __init__(
        self,
        *,
        free: int = 2,
        ahead: int = 0,
        lanes: Sequence[Sequence[Lane]] = ((LANE,),),
        weights: Mapping[str, int] | None = None,
        options: WorkerOptions | None = None,
    ) -> None:
        self.clock, self.dice, self.ids = FakeClock(), FakeDice(), FakeIds()
        self.store = FaultyStore(self.clock, self.ids)
        self.backends = [HandBackend(free, ahead) for _ in lanes]
        self.backend = self.backends[0]
        self.bus = Bus()
        self.said = hear(self.bus)
        self.tally = Tally(self.bus)
        self.timings = timings_of(options or WorkerOptions())
        self.presence = WorkerPresence(
            worker=self.ids.ordered(),
            application=APPLICATION,
            host="host-a",
            process=1,
            queues=["reports"],
            executors=free,
        )
        pools = [
            ServedPool(
                f"pool-{number}",
                backend,
                {lane.queue: (weights or {}).get(lane.queue, 1) for lane in served},
                max(1, free),
            )
            for number, (backend, served) in enumerate(zip(self.backends, lanes, strict=True), 1)
        ]
        self.parts = Parts(
            self.store,
            pools,
            self.presence,
            frozenset({KIND}),
            self.timings,
            clock=self.clock,
            dice=self.dice,
            ids=self.ids,
            bus=self.bus,
            changed=lambda: None,
            fail=_fail,
            cut=self._cut,
        )
        self.claimers, self.sinks = self.parts.stations.claimers, self.parts.stations.sinks
        self.claimer = self.claimers[0]
        self.registry = self.parts.registry
        self.finalizer, self.releaser = self.parts.finalizer, self.parts.releaser
        self.heartbeat, self.watchdog, self.recovery = self.parts.heartbeat, self.parts.watchdog, self.parts.recovery
        self.cuts: list[StoreHistoryBroken] = []
        for backend, sink in zip(self.backends, self.sinks, strict=True):
            backend.sink, backend.started = sink, True

    def dispatch(self, count: int = 1, **options: Any) -> list[Receipt]:
        return dispatch(self.store, self.clock, self.ids, count, **options)

    def job(self, receipt: Receipt) -> JobRecord:
        record = self.store.run(self.store.job(APPLICATION, receipt.job))
        assert record is not None
        return record

    def states(self, receipts: list[Receipt]) -> list[str]:
        return [self.job(receipt).state.value for receipt in receipts]

    def control(self, receipt: Receipt, action: ControlAction = ControlAction.CANCEL) -> ControlAnswer:
        """Do something to a job as it stands now."""
        return control(self.store, self.ids, self.job(receipt), action)

    def pause(self, queue: str) -> None:
        pause(self.store, self.ids, queue)

    def heard(self, kind: type[Any]) -> list[Any]:
        """What the bus said of this kind."""
        return [event for event in self.said if isinstance(event, kind)]

    def _cut(self, error: StoreHistoryBroken) -> None:
        self.cuts.append(error)


def _fail(reason: str) -> None:
    raise AssertionError(reason)
