"""The parts of one worker and how they are tied together; `runwick.worker.engine` brings them to life.

claimer of each pool ── claims ─▶ finalizer.join ─┐ whoever writes tells the other: the store commits
     ▲  ▲            ◀─ writes ── finalizer ──────┘ claims and settlements together
     │  └──── tickets returned ── finalizer, releaser
     └─ look for work ── the pool's backend ── ended ─▶ finalizer
                          ▲                └─ give back ─▶ releaser
                          └── asker ◀── heartbeat: cancels, looks, lost leases, new deadlines
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from runwick.contracts.activity import StackAnswer
from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Attempt, Held, Kind, WorkerPresence
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import StoreHistoryBroken
from runwick.contracts.health import HealthStatus, RoleHealth
from runwick.contracts.stores import Store
from runwick.runtime.loops import Loop
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.asking import Asker
from runwick.worker.claimer import Claimer, Intake, Neighbours
from runwick.worker.finalizer import Finalizer
from runwick.worker.heartbeat import Heartbeat, Runs, Watchdog
from runwick.worker.line import Line
from runwick.worker.pools import Pools, PoolSink, ServedPool, on_the_loops_clock
from runwick.worker.recovery import Recovery
from runwick.worker.registry import Registry, Share
from runwick.worker.releaser import Releaser
from runwick.worker.reports import Reports
from runwick.worker.stations import Station, Stations
from runwick.worker.timings import Timings
from runwick.worker.troubles import Troubles


class Parts:
    """One registry, finalizer, releaser, heartbeat, watchdog and recovery; a station for each pool.

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
        self._clock, self._dice, self._ids, self._bus = clock, dice, ids, bus
        self._timings = timings
        self._fail = fail
        self.presence = presence
        """Who the worker is, and what it serves."""
        self.pools = Pools(pools)
        self.stations = Stations(self.pools, self._station, lambda attempts: self.releaser.release(attempts))
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
            writes=self.stations.join,
            gone=self.stations.tickets_returned,
        )
        self.releaser = Releaser(
            store, self.line, self.registry, clock=clock, dice=dice, bus=bus, gone=self.stations.tickets_returned
        )
        self.recovery = Recovery(store, self.line, presence.application, timings, dice=dice, bus=bus)
        self.asker = Asker(self.registry, self.pools, timings, clock=clock, bus=bus)
        self.heartbeat = self._heartbeat()
        self.watchdog = Watchdog(self.registry, timings, clock=clock, lose=self.heartbeat.lose)
        self._neighbours = Neighbours(
            self.releaser.release, self.finalizer.join, changed, self.heartbeat.holds, self.heartbeat.hasten
        )
        self.serve(pools, kinds, self.stations.new_for(pools, kinds))
        bus.listen(events.Settled, self.stations.set_alarms)

    @property
    def keepers(self) -> tuple[Loop, ...]:
        """The loops that keep what is held, to the very end."""
        return self.finalizer, self.releaser, self.heartbeat, self.watchdog, self.recovery

    def health(self) -> list[RoleHealth]:
        """Of the store, of what an operator admits, and of each pool."""
        store = self.troubles.of_store()
        if self.line.broken is not None:
            store = RoleHealth("store", HealthStatus.UNHEALTHY, "store_history_broken", str(self.line.broken))
        return [store, self.troubles.of_admission(), *self.pools.health()]

    def serve(self, pools: Sequence[ServedPool], kinds: frozenset[Kind], new: Sequence[Station]) -> list[Station]:
        """Serve exactly these pools from now on, see `Stations.serve`."""
        leaving = self.stations.serve(pools, kinds, new)
        self.presence = msgspec.structs.replace(
            self.presence, queues=self.pools.queues, executors=self.pools.size, kinds=sorted(kinds)
        )
        return leaving

    def _heartbeat(self) -> Heartbeat:
        def lost(attempts: Sequence[Attempt], within_s: float) -> None:
            self.pools.ask(attempts, CancellationCause.LEASE_LOST, within_s)

        return Heartbeat(
            self._store,
            self.line,
            self.registry,
            Reports(lambda: self.presence, self.pools, self.registry, clock=self._clock),
            Runs(self._extend, lost, self.asker.cancel, self.asker.look),
            self._timings,
            clock=self._clock,
            dice=self._dice,
            bus=self._bus,
            recovery_due=self.recovery.due,
        )

    def _station(self, pool: ServedPool, kinds: frozenset[Kind], of_pool: str) -> Station:
        share = Share()
        claimer = Claimer(
            self._store,
            self.line,
            pool,
            share,
            self.registry,
            Intake(self.presence.application, self.presence.worker, kinds),
            self._timings,
            self._neighbours,
            clock=self._clock,
            dice=self._dice,
            ids=self._ids,
            bus=self._bus,
            name=f"claimer{of_pool}",
        )
        sink = PoolSink(
            ended=self.finalizer.complete,
            give_back=self.releaser.release,
            let_go=self._let_go,
            asked=lambda attempt, cause: self._bus.publish(events.AttemptAsked(attempt, cause)),
            looked=self._looked,
            look_for_work=claimer.look_for_work,
            fail=lambda reason: self._fail(f"the backend{of_pool} cannot go on: {reason}"),
        )
        return Station(pool.backend, claimer, sink, share)

    def _extend(self, deadlines_s: Mapping[bytes, float]) -> None:
        self.pools.extend(
            {attempt: on_the_loops_clock(deadline_s, self._clock) for attempt, deadline_s in deadlines_s.items()}
        )

    def _looked(self, answer: StackAnswer) -> None:
        if self.asker.looked(answer):
            self.heartbeat.looked(answer)

    def _let_go(self, attempts: Sequence[Attempt]) -> None:
        for attempt in self.registry.lose([Held(attempt.job, attempt.claim_token) for attempt in attempts]):
            reason = "its run goes on although it was asked to stop, and nothing here can end it"
            self._bus.publish(events.LeaseLost(attempt, reason))

    def _answered_again(self, act: str) -> None:
        """The store is back; what waits to be written again need not wait for longer."""
        if act not in ("settle", "release"):
            self.finalizer.hasten()
            self.releaser.hasten()
