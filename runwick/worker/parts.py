"""The parts of one worker and how they are tied together; `runwick.worker.engine` brings them to life.

claimer of each pool ── claims ─▶ finalizer.join ─┐ whoever writes tells the other: the store commits
     ▲  ▲            ◀─ writes ── finalizer ──────┘ claims and settlements together
     │  └──── tickets returned ── finalizer, releaser
     └─ look for work ── the pool's backend ── ended ─▶ finalizer
                                           └─ give back ─▶ releaser
"""

from collections.abc import Callable, Sequence

from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Attempt, Held, Kind, WorkerPresence
from runwick.contracts.errors import StoreHistoryBroken
from runwick.contracts.stores import Store
from runwick.runtime.loops import Loop
from runwick.telemetry.bus import Bus
from runwick.worker.claimer import Claimer, Intake, Neighbours
from runwick.worker.finalizer import Finalizer
from runwick.worker.heartbeat import Heartbeat, Watchdog
from runwick.worker.line import Line
from runwick.worker.pools import Pools, PoolSink, ServedPool
from runwick.worker.recovery import Recovery
from runwick.worker.registry import Registry, Share, shared_out
from runwick.worker.releaser import Releaser
from runwick.worker.timings import Timings
from runwick.worker.troubles import Troubles


class Parts:
    """One registry, finalizer, releaser, heartbeat, watchdog and recovery; a claimer and a sink for each pool.

    Args:
        changed: called when a worker that waits for its end should look again.
        fail: called with a sentence when a backend cannot go on.
        cut: called when the store's history is broken.
    """

    def __init__(
        self,
        store: Store,
        pools: Sequence[ServedPool],
        presence: WorkerPresence,
        kinds: frozenset[Kind],
        timings: Timings,
        *,
        clock: Clock,
        dice: Dice,
        ids: Ids,
        bus: Bus,
        changed: Callable[[], None],
        fail: Callable[[str], None],
        cut: Callable[[StoreHistoryBroken], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._bus = bus
        self._timings = timings
        self.pools = Pools(pools)
        self.registry = Registry()
        self.troubles = Troubles(clock, bus, self._answered_again)
        self.line = Line(store, timings, clock=clock, troubles=self.troubles, cut=cut)
        self.finalizer = Finalizer(
            store,
            self.line,
            self.registry,
            timings,
            clock=clock,
            dice=dice,
            bus=bus,
            next_completion_ms=self.pools.next_completion_ms,
            writes=self._writes,
            gone=self._tickets_returned,
        )
        self.releaser = Releaser(
            store, self.line, self.registry, clock=clock, dice=dice, bus=bus, gone=self._tickets_returned
        )
        self.recovery = Recovery(store, self.line, presence.application, dice=dice, bus=bus)
        self.heartbeat = Heartbeat(
            store,
            self.line,
            self.registry,
            presence,
            timings,
            clock=clock,
            dice=dice,
            bus=bus,
            recovery_due=self.recovery.due,
            stop_runs=self.pools.stop_runs,
        )
        self.watchdog = Watchdog(self.registry, timings, clock=clock, lose=self.heartbeat.lose)
        intake = Intake(presence.application, presence.worker, kinds)
        neighbours = Neighbours(self.releaser.release, self.finalizer.join, changed, self.heartbeat.hasten)
        self.claimers: list[Claimer] = []
        self.sinks: list[PoolSink] = []
        for pool, share in zip(pools, shared_out([pool.size for pool in pools]), strict=True):
            of_pool = f' of pool "{pool.name}"' if len(pools) > 1 else ""
            claimer = self._claimer(pool, share, intake, neighbours, ids, of_pool)
            self.claimers.append(claimer)
            self.sinks.append(self._sink(claimer, fail, of_pool))

    @property
    def keepers(self) -> tuple[Loop, ...]:
        """The loops that keep what is held, to the very end."""
        return self.finalizer, self.releaser, self.heartbeat, self.watchdog, self.recovery

    def stop_claiming(self) -> None:
        """Claim nothing more, for any pool."""
        for claimer in self.claimers:
            claimer.stop()

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way, whose answer nobody holds yet."""
        return any(claimer.is_claiming for claimer in self.claimers)

    @property
    def found_nothing(self) -> bool:
        """Whether nothing was due for any pool when it last asked."""
        return all(claimer.found_nothing for claimer in self.claimers)

    def _claimer(
        self, pool: ServedPool, share: Share, intake: Intake, neighbours: Neighbours, ids: Ids, of_pool: str
    ) -> Claimer:
        return Claimer(
            self._store,
            self.line,
            pool,
            share,
            self.registry,
            intake,
            self._timings,
            neighbours,
            clock=self._clock,
            dice=self._dice,
            ids=ids,
            bus=self._bus,
            name=f"claimer{of_pool}",
        )

    def _sink(self, claimer: Claimer, fail: Callable[[str], None], of_pool: str) -> PoolSink:
        return PoolSink(
            ended=self.finalizer.complete,
            give_back=self.releaser.release,
            let_go=self._let_go,
            look_for_work=claimer.wake.ring,
            fail=lambda reason: fail(f"the backend{of_pool} cannot go on: {reason}"),
        )

    def _let_go(self, attempts: Sequence[Attempt]) -> None:
        reason = "its run goes on past its time limit, and nothing here can stop it"
        self.heartbeat.lose([Held(attempt.job, attempt.claim_token) for attempt in attempts], reason)

    def _writes(self) -> None:
        for claimer in self.claimers:
            claimer.join()

    def _tickets_returned(self) -> None:
        for claimer in self.claimers:
            claimer.tickets_returned()

    def _answered_again(self, act: str) -> None:
        """The store is back; what waits to be written again need not wait for longer."""
        if act not in ("settle", "release"):
            self.finalizer.hasten()
            self.releaser.hasten()
