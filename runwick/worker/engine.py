"""A worker's life, whatever runs its handlers.

    admitted by the store ─▶ backends up ─▶ loops run ─▶ drain ─▶ backends down ─▶ good-bye
                                            claimers · finalizer · releaser · heartbeat · watchdog · recovery

    drain, measured from the stop: claim nothing more ▶ give back what has not begun ▶ let run, still renewing
                                   ▶ stop by force ▶ settle what is known ▶ leave the rest to its leases

    the store's history is broken: claim nothing more ▶ every lease is lost ▶ stop the runs ▶ wait to be stopped

The engine never calls a handler and holds no store connection of its own; everything comes in through the
constructor. It runs on one event loop, which no user code shares when the backends are not inline ones.
"""

import asyncio
import enum
import os
import socket
from collections.abc import Callable, Sequence

from runwick.config.options import WorkerOptions
from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Kind, WorkerPresence
from runwick.contracts.errors import RunwickError, StoreHistoryBroken
from runwick.contracts.stores import Outlook, Store
from runwick.runtime.loops import Loop, keep_running
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.claimer import Claimer
from runwick.worker.parts import Parts
from runwick.worker.pools import Pools, ServedPool
from runwick.worker.tally import Tally
from runwick.worker.timings import Timings, timings_of

_EMPTY_CHECK_S = 0.2
"""How often a worker that ends when empty looks at least whether it is."""

Until = Callable[[Outlook], bool]
"""Whether a worker may end, seeing what is left. It is asked only while the worker holds nothing."""


def nothing_left(outlook: Outlook) -> bool:
    """No job that this worker may run is due, retrying, handed over or running."""
    return not (outlook.due or outlook.retrying or outlook.leased)


def nothing_due(outlook: Outlook) -> bool:
    """No job that this worker may run is due, handed over or running now."""
    return not (outlook.due or outlook.leased)


class Stop(enum.IntEnum):
    """How urgently a worker stops. It only ever rises."""

    RUN = 0
    DRAIN = 1
    """Let running handlers end, within the budget."""
    FORCE = 2
    """Stop running handlers at once."""


class Worker:
    """The pools of one application in one process, each on a backend of its own.

    Args:
        store: where the jobs are.
        pools: at least one; names differ, queues may be the same.
        application: whose jobs.
        kinds: those that can be decoded and have a handler here.
        options: checked already.
        clock, dice, ids: where time, chance and ids come from.
        bus: hears everything that happens.
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
    ) -> None:
        self.tally = Tally(bus)
        self._store = store
        self._pools = Pools(pools)
        self._application = application
        self._kinds = kinds
        self._timings: Timings = timings_of(options)
        self._clock = clock
        self._bus = bus
        self._stop = Stop.RUN
        self._stopping_since_s: float | None = None
        self._failure: str | None = None
        self._finished = False
        self._changed = Wake()
        bus.listen(events.Settled, lambda _: self._changed.ring())
        self._presence = WorkerPresence(
            worker=ids.ordered(),
            application=application,
            host=socket.gethostname(),
            process=os.getpid(),
            queues=self._pools.queues,
            executors=self._pools.size,
        )
        self._parts = Parts(
            store,
            pools,
            self._presence,
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

    @property
    def failure(self) -> str | None:
        """Why it cannot work any more, in one sentence, if that is so: a backend gave up, or the store's history is
        broken."""
        return self._failure

    @property
    def running(self) -> int:
        """Attempts in the backends' hands."""
        return self._pools.running()

    async def outlook(self) -> Outlook:
        """What is left for all its pools.

        Raises:
            RunwickError: the store does not say.
        """
        return await self._parts.line.ask(self._store.outlook(self._application, self._pools.lanes, self._kinds))

    def stop(self, urgency: Stop = Stop.DRAIN) -> None:
        """Begin to stop, or stop more urgently. Must be called on the worker's event loop."""
        if self._stop is Stop.RUN:
            self._stopping_since_s = self._clock.steady_s()
        self._stop = max(self._stop, urgency)
        self._changed.ring()

    def stop_more_urgently(self) -> None:
        """What a signal does: the first drains, the next stops by force."""
        self.stop(Stop.DRAIN if self._stop is Stop.RUN else Stop.FORCE)

    async def run(self, *, until: Until | None = None) -> Outlook | None:
        """Live until stopped, or until `until` says that what is left may be left.

        Answers what was left when `until` ended it, otherwise None. When the store's history is broken, it lives on
        until it is stopped, unless it was to end by itself.

        Raises:
            AdmissionClosed: an operator drains or maintains the application; nothing was started.
            RunwickError: the store does not let it in, or a backend could not be started; none is left.
        """
        parts, lanes = self._parts, self._pools.lanes
        await parts.line.insist(
            lambda: self._store.register(self._application, lanes, self._kinds), self._timings.claim_budget_s
        )
        await self._pools.start(parts.sinks)
        tasks = [self._start(claimer, until=self._ended(claimer)) for claimer in parts.claimers]
        tasks += [self._start(loop, until=lambda: self._finished) for loop in parts.keepers]
        self._bus.publish(events.WorkerReady(self._application, self._pools.size))
        ends_by_s: float | None = None
        try:
            outlook = await self._wait_for_the_end(until)
            started_s = self._stopping_since_s or self._clock.steady_s()
            ends_by_s = started_s + self._timings.budget_s
            await self._drain(started_s)
        finally:
            parts.stop_claiming()
            try:
                await self._pools.stop()
            finally:
                await self._end(tasks, ends_by_s or self._clock.steady_s() + self._timings.control_timeout_s)
        await self._say_good_bye(ends_by_s)
        return outlook

    def _fail(self, reason: str) -> None:
        """A backend gave up: the whole worker stops, for nobody would notice a pool that stands still."""
        self._failure = self._failure or reason
        self.stop(Stop.FORCE)

    def _cut(self, error: StoreHistoryBroken) -> None:
        """The store is not the one that this worker knew: nothing that it holds is known to be its own."""
        self._failure = self._failure or str(error)
        parts = self._parts
        parts.stop_claiming()
        leases = len(parts.registry.held())
        running = parts.registry.lose_all()
        self._bus.publish(events.HistoryBroken(str(error), leases))
        if running:
            self._pools.stop_runs(running)
        for loop in parts.keepers:
            loop.wake.ring()
        self._changed.ring()

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
            if until is not None:
                if self._parts.line.broken is not None:
                    return None
                if (outlook := await self._outlook_when_idle()) is not None and until(outlook):
                    return outlook
            await self._changed.sleep(None if until is None else _EMPTY_CHECK_S)
        return None

    async def _outlook_when_idle(self) -> Outlook | None:
        """What is left, while nothing is held and the last claims found nothing."""
        if not self._parts.found_nothing or len(self._parts.registry):
            return None
        try:
            return await self.outlook()
        except Exception as error:
            self._loop_failed("outlook", error)
            return None

    async def _drain(self, started_s: float) -> None:
        parts, timings = self._parts, self._timings
        parts.stop_claiming()
        parts.finalizer.draining = True
        parts.releaser.release(self._pools.take_back())
        parts.finalizer.wake.ring()
        if self._stop is not Stop.RUN:
            self._bus.publish(events.DrainStarted(self._pools.running()))
        runs_until_s = started_s + timings.drain_s
        await self._wait_while(lambda: self._pools.running() > 0 and self._stop < Stop.FORCE, runs_until_s)
        if self._pools.running():
            self._pools.stop_by_force()
            ended_until_s = min(self._clock.steady_s(), runs_until_s) + timings.cancellation_s
            await self._wait_while(lambda: self._pools.running() > 0, ended_until_s)
        settled_until_s = self._clock.steady_s() + timings.finalization_s
        await self._wait_while(
            # What still runs cannot be stopped, and nothing is known of its end.
            lambda: parts.is_claiming or len(parts.registry) > self._pools.running(),
            min(settled_until_s, started_s + timings.budget_s),
        )

    async def _wait_while(self, condition: Callable[[], bool], until_s: float) -> None:
        while condition() and (left_s := until_s - self._clock.steady_s()) > 0:
            await self._changed.sleep(min(left_s, 0.05))

    async def _end(self, tasks: Sequence[asyncio.Task[None]], ends_by_s: float) -> None:
        """Let the loops end their rounds; one that still waits for the store when the time is over is left alone."""
        self._finished = True
        for loop in (*self._parts.claimers, *self._parts.keepers):
            loop.wake.ring()
        await asyncio.wait(tasks, timeout=max(0.0, ends_by_s - self._clock.steady_s()))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _say_good_bye(self, ends_by_s: float) -> None:
        left_s = ends_by_s - self._clock.steady_s()
        if self._parts.line.broken is None and left_s > 0:
            try:
                limit_s = min(left_s, self._timings.control_timeout_s)
                await self._parts.line.ask(self._store.depart(self._presence), limit_s)
            except Exception as error:
                self._loop_failed("good-bye", error)
        self._bus.publish(events.WorkerStopped(len(self._parts.registry)))
