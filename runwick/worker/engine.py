"""A worker's life, whatever runs its handlers.

    admitted by the store ─▶ backends up ─▶ loops run ─▶ drain ─▶ backends down ─▶ good-bye
                                            claimers · finalizer · releaser · heartbeat · watchdog · recovery

    drain, measured from the stop: claim nothing more ▶ give back what has not begun ▶ let run, still renewing and still
                                   hearing of cancels ▶ ask to stop ▶ kill ▶ settle what is known ▶ leave the rest to
                                   its leases

    the store's history is broken: claim nothing more ▶ every lease is lost ▶ kill the runs ▶ end, with that error

The engine never calls a handler and holds no store connection of its own; everything comes in through the
constructor. It runs on one event loop, which no user code shares when the backends are not inline ones.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence

from runwick.config.options import WorkerOptions
from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Kind, Lane, WorkerPresence
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import InvalidArgument, RunwickError, StoreHistoryBroken
from runwick.contracts.health import HealthStatus, RoleHealth, WorkerHealth
from runwick.contracts.limits import DeclaredLimits, Drift
from runwick.contracts.stores import Outlook, Store
from runwick.runtime.asking import ask_async
from runwick.runtime.loops import Loop, keep_running
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.claimer import Claimer
from runwick.worker.drain import Drain, Stop
from runwick.worker.health import HealthWatch, worker_health
from runwick.worker.line import Insisting
from runwick.worker.parts import Parts
from runwick.worker.pools import ServedPool, lanes_of_all, start_all, stop_all
from runwick.worker.registering import registering
from runwick.worker.stations import Station
from runwick.worker.tally import Tally
from runwick.worker.timings import Timings, timings_of

_RUN = Stop.RUN

_EMPTY_CHECK_S = 0.2
"""How often a worker that ends when empty looks at least whether it is."""
_REGISTER_MIN_S = 5.0
"""For how long a start insists at least: nothing is held yet that a slow store could cost."""
_DEPARTURE_CHECK_S = 0.05
"""How often a pool that leaves is looked at whether anything runs in it."""

NO_LIMITS = DeclaredLimits()

Until = Callable[[Outlook], bool]
"""Whether a worker may end, seeing what is left. It is asked only while the worker holds nothing."""


def nothing_left(outlook: Outlook) -> bool:
    """No job that this worker may run is due, retrying, handed over or running, nor waits in a limit's line. What waits
    in a paused queue is left: nobody here can end that."""
    return not (outlook.due or outlook.blocked or outlook.postponed or outlook.leased)


def nothing_due(outlook: Outlook) -> bool:
    """No job that this worker may run is due, handed over or running now. What waits in a limit's line then waits for
    time to pass, or for somebody else."""
    return not (outlook.due - outlook.blocked or outlook.leased)


class Worker:
    """The pools of one application in one process, each on a backend of its own.

    Args:
        store: where the jobs are.
        pools: at least one; names differ, queues may be the same.
        application: whose jobs.
        kinds: those that can be decoded and have a handler here.
        limits: those of queues and job types that the application declares.
        options: checked already.
        clock, dice, ids: where time, chance and ids come from.
        bus: hears everything that happens.
        worker_id: who it is, where that had to be known before; otherwise it is made here.
        grade: how strongly the leases of its runs are fenced, for its health.
    """

    def __init__(
        self,
        store: Store,
        pools: Sequence[ServedPool],
        *,
        application: str,
        kinds: frozenset[Kind],
        options: WorkerOptions,
        clock: Clock,
        dice: Dice,
        ids: Ids,
        bus: Bus,
        limits: DeclaredLimits = NO_LIMITS,
        worker_id: bytes | None = None,
        grade: str | None = None,
    ) -> None:
        self.tally = Tally(bus)
        self._store = store
        self._application = application
        self._kinds = kinds
        self._limits = limits
        self._drifts: set[Drift] = set()
        """Those that were told."""
        self._timings: Timings = timings_of(options)
        self._clock = clock
        self._bus = bus
        self._grade = grade
        self._stop = Stop.RUN
        self._stopping_since_s: float | None = None
        self._failure: str | None = None
        self._is_up = False
        self._finished = False
        self._tasks: list[asyncio.Task[None]] = []
        self._departures: set[asyncio.Task[None]] = set()
        self._changed = Wake()
        self._health = HealthWatch(self.health, bus=bus)
        bus.listen(events.Settled, self._settled)
        presence = WorkerPresence(
            worker=ids.ordered() if worker_id is None else worker_id,
            application=application,
            host=socket.gethostname(),
            process=os.getpid(),
            queues=(),
            executors=0,
        )
        self._parts = Parts(
            store,
            pools,
            presence,
            kinds,
            self._timings,
            clock=clock,
            dice=dice,
            ids=ids,
            bus=bus,
            changed=self._changed.ring,
            fail=self._fail,
            cut=self._cut,
        )
        self._pools = self._parts.pools
        self._drain = Drain(self._parts, self._timings, clock=clock, changed=self._changed, urgency=lambda: self._stop)

    @property
    def worker_id(self) -> bytes:
        """Who it is, in the store and for whoever proves its death later."""
        return self._parts.presence.worker

    @property
    def failure(self) -> str | None:
        """Why it cannot work any more, in one sentence, if that is so: a backend gave up, or the store's history is
        broken."""
        return self._failure

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop, or has reason to."""
        return self._stop is not Stop.RUN

    @property
    def running(self) -> int:
        """Attempts in the backends' hands."""
        return self._pools.running()

    def count_runs(self) -> int:
        """How many handlers run now. What they have used so far is counted in `tally`."""
        return self.tally.look(self._pools.doing(), self._parts.registry.attempt_ids)

    async def outlook(self) -> Outlook:
        """What is left for all its pools.

        Raises:
            RunwickError: the store does not say.
        """
        return await self._parts.line.ask(self._store.outlook(self._application, self._pools.lanes, self._kinds))

    def health(self) -> WorkerHealth:
        """Whether it can do its work, and why not."""
        if not self._is_up:
            worker = RoleHealth("worker", HealthStatus.DEGRADED, text=self._failure or "it has not begun, or has ended")
            return worker_health([worker], takes_work=False, grade=self._grade)
        worker = RoleHealth("worker", HealthStatus.HEALTHY)
        if self._stop is not Stop.RUN:
            worker = RoleHealth("worker", HealthStatus.DEGRADED, "draining", self._failure or "it was told to stop")
        takes_work = self._stop is Stop.RUN and self._parts.troubles.admitted
        return worker_health([worker, *self._parts.health()], takes_work=takes_work, grade=self._grade)

    def stop(self, urgency: Stop = Stop.DRAIN) -> None:
        """Begin to stop, or stop more urgently. Must be called on the worker's event loop."""
        if self._stop is Stop.RUN:
            self._stopping_since_s = self._clock.steady_s()
        self._stop = max(self._stop, urgency)
        self._changed.ring()
        self._health.wake.ring()

    def stop_more_urgently(self) -> None:
        """What a signal does: the first drains, the second cancels what runs, the third kills it."""
        self.stop(Stop(min(self._stop + 1, Stop.KILL)))

    def show_stacks(self) -> None:
        """Have the stack of everything that runs published, soon (`events.StackShown`); it goes nowhere else. Must be
        called on the worker's event loop."""
        self._parts.asker.show()

    async def inherit(self, predecessor: bytes) -> int:
        """Close at once what a worker left that is known to be dead, with everything it ran; answers how many
        attempts that were. Their jobs run again without waiting for leases to run out.

        Args:
            predecessor: its id, of the same application and store.

        Raises:
            RunwickError: the store does not answer, or refuses; calling it again goes on where it ended.
        """
        closed = await self._parts.recovery.inherit(predecessor)
        if closed:
            self._parts.stations.look_for_work()
        return closed

    async def reconfigure(
        self, pools: Sequence[ServedPool], kinds: frozenset[Kind], limits: DeclaredLimits = NO_LIMITS
    ) -> None:
        """Serve exactly these pools and kinds from now on, under these limits. Must be called on the worker's event
        loop, once at a time.

        A pool is known by its backend: one that stays goes on with what it holds, whatever its lanes and size are now;
        one that is new is brought up first; one that is not named claims nothing more, and is stopped when what runs
        in it has ended.

        Raises:
            InvalidArgument: the worker does not run, or stops (code ``invalid_state``); nothing has changed.
            RunwickError: the store does not let it in, or a new backend cannot be brought up; nothing has changed.
        """
        self._must_run()
        parts = self._parts
        await self._register(lanes_of_all(pools), kinds, limits)
        new = parts.stations.new_for(pools, kinds)
        backends = [station.backend for station in new]
        await start_all(backends, [station.sink for station in new])
        try:
            self._must_run()
        except InvalidArgument:
            await stop_all(backends)
            raise
        leaving = parts.serve(pools, kinds, new)
        self._kinds, self._limits = kinds, limits
        self._tasks += [self._start(station.claimer, until=self._ended(station.claimer)) for station in new]
        for station in leaving:
            departure = asyncio.create_task(self._see_off(station), name="departure of a pool")
            self._departures.add(departure)
            departure.add_done_callback(self._departures.discard)

    async def _register(self, lanes: Sequence[Lane], kinds: frozenset[Kind], limits: DeclaredLimits) -> None:
        """Make known what is about to be served; limits that differ from those of the store are told, each once."""
        line = Insisting(self._parts.line, max(self._timings.claim_budget_s, _REGISTER_MIN_S))
        found = set(await ask_async(line, registering(self._store, self._application, lanes, kinds, limits)))
        for drift in sorted(found - self._drifts):
            self._bus.publish(events.LimitDrifted(drift))
        self._drifts |= found

    def _must_run(self) -> None:
        if not self._is_up or self._parts.finalizer.draining or self._stop is not Stop.RUN:
            raise InvalidArgument("invalid_state", "this worker does not run, or is stopping")

    async def _see_off(self, station: Station) -> None:
        """Stop a pool's backend when nothing runs in it any more; a worker that ends first stops it with the others."""
        while station.backend.running() or station.claimer.is_claiming:
            if not self._is_up:
                return
            await asyncio.sleep(_DEPARTURE_CHECK_S)
        try:
            await station.backend.stop()
        except Exception as error:
            self._loop_failed("departure of a pool", error)
        self._parts.stations.has_left(station)

    async def run(self, *, until: Until | None = None) -> Outlook | None:
        """Live until stopped, or until `until` says that what is left may be left.

        Answers what was left when `until` ended it, otherwise None.

        Raises:
            StoreHistoryBroken: the store is another one than before, or went back in time; what ran was stopped, and
                nothing was written since. Only another worker can go on.
            AdmissionClosed: an operator drains or maintains the application; nothing was started.
            RunwickError: the store does not let it in, or a backend could not be started; none is left.
        """
        parts = self._parts
        await self._register(self._pools.lanes, self._kinds, self._limits)
        await self._pools.start(parts.stations.sinks)
        unhook = self._store.wake_on_requests(self.worker_id, parts.heartbeat.requested)
        self._is_up = True
        self._tasks += [self._start(claimer, until=self._ended(claimer)) for claimer in parts.stations.claimers]
        self._tasks += [self._start(loop, until=lambda: self._finished) for loop in parts.keepers]
        self._tasks.append(self._start(self._health, until=lambda: not self._is_up))
        self._bus.publish(events.WorkerReady(self._application, self._pools.size))
        ends_by_s: float | None = None
        try:
            outlook = await self._wait_for_the_end(until)
            started_s = self._stopping_since_s or self._clock.steady_s()
            ends_by_s = started_s + self._timings.budget_s
            running = self._drain.begin()
            if self._stop is not Stop.RUN:
                self._bus.publish(events.DrainStarted(running))
            await self._drain.finish(started_s)
        finally:
            self._is_up = False
            unhook()
            parts.stations.stop_claiming()
            try:
                await self._stop_pools(ends_by_s or self._clock.steady_s() + self._timings.control_timeout_s)
            finally:
                await self._end(ends_by_s or self._clock.steady_s() + self._timings.control_timeout_s)
        await self._say_good_bye(ends_by_s)
        if parts.line.broken is not None:
            raise parts.line.broken
        return outlook

    def _settled(self, _: events.Settled) -> None:
        """Somebody may wait for the last of them."""
        if self._stop is not _RUN or not len(self._parts.registry):
            self._changed.ring()

    def _fail(self, reason: str) -> None:
        """A backend gave up: the whole worker stops, for nobody would notice a pool that stands still."""
        self._failure = self._failure or reason
        self.stop(Stop.CANCEL)

    def _cut(self, error: StoreHistoryBroken) -> None:
        """The store is not the one that this worker knew: nothing that it holds is known to be its own."""
        self._failure = self._failure or str(error)
        parts = self._parts
        parts.stations.stop_claiming()
        leases = len(parts.registry.held())
        running = parts.registry.lose_all()
        self._bus.publish(events.HistoryBroken(str(error), leases))
        if running:
            self._pools.ask(running, CancellationCause.LEASE_LOST, 0.0)
        for loop in parts.keepers:
            loop.wake.ring()
        self.stop(Stop.KILL)

    def _start(self, loop: Loop, *, until: Callable[[], bool]) -> asyncio.Task[None]:
        return asyncio.create_task(keep_running(loop, until=until, failed=self._loop_failed), name=loop.name)

    def _ended(self, claimer: Claimer) -> Callable[[], bool]:
        """Whether this one has claimed its last: it is stopped, and nobody owes it an answer."""
        return lambda: self._finished or (claimer.stopped and not claimer.is_claiming)

    def _loop_failed(self, name: str, error: Exception) -> None:
        # What came over the line was told there, once; a store that is away must not be told again by every loop.
        if not isinstance(error, RunwickError) and not self._parts.troubles.knows(error):
            self._bus.publish(events.LoopFailed(name, f"{type(error).__name__}: {error}"))

    async def _wait_for_the_end(self, until: Until | None) -> Outlook | None:
        while self._stop is Stop.RUN:
            if until is not None and (outlook := await self._outlook_when_idle()) is not None and until(outlook):
                return outlook
            await self._changed.sleep(None if until is None else _EMPTY_CHECK_S)
        return None

    async def _outlook_when_idle(self) -> Outlook | None:
        """What is left, while nothing is held and the last claims found nothing."""
        if not self._parts.stations.found_nothing or len(self._parts.registry):
            return None
        try:
            return await self.outlook()
        except Exception as error:
            self._loop_failed("outlook", error)
            return None

    async def _stop_pools(self, ends_by_s: float) -> None:
        """Let the backends end; what does not in time, or before a stop by force, is killed."""

        async def stop() -> None:
            await asyncio.gather(*self._departures, return_exceptions=True)  # whose backends stop with them
            await self._pools.stop()

        stopping = asyncio.create_task(stop(), name="end of the backends")
        stopping.add_done_callback(lambda _: self._changed.ring())
        try:
            while not stopping.done() and self._stop < Stop.KILL and (left_s := ends_by_s - self._clock.steady_s()) > 0:
                await self._changed.sleep(left_s)
        except BaseException:
            stopping.cancel()
            raise
        if not stopping.done():
            self._pools.ask(None, CancellationCause.SHUTDOWN, 0.0)
        await stopping

    async def _end(self, ends_by_s: float) -> None:
        """Let the loops end their rounds; one that still waits for the store when the time is over is left alone."""
        self._finished = True
        for loop in (*self._parts.stations.claimers, *self._parts.keepers, self._health):
            loop.wake.ring()
        await asyncio.wait(self._tasks, timeout=max(0.0, ends_by_s - self._clock.steady_s()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _say_good_bye(self, ends_by_s: float) -> None:
        left_s = ends_by_s - self._clock.steady_s()
        if self._parts.line.broken is None and left_s > 0:
            try:
                limit_s = min(left_s, self._timings.control_timeout_s)
                await self._parts.line.ask(self._store.depart(self._parts.presence), limit_s)
            except Exception as error:
                self._loop_failed("good-bye", error)
        self._bus.publish(events.WorkerStopped(len(self._parts.registry)))
