"""A worker's life, whatever runs its handlers.

    backend up ─▶ loops run: claimer · finalizer · heartbeat · watchdog · recovery ─▶ drain ─▶ backend down ─▶ good-bye

    drain, measured from the stop: claim nothing more ▶ give back what has not begun ▶ let run, still renewing
                                   ▶ stop by force ▶ settle what is known ▶ leave the rest to its leases

The engine never calls a handler and holds no store connection of its own; everything comes in through the
constructor. It runs on one event loop, which no user code shares when the backend is not the inline one.
"""

import asyncio
import enum
import os
import socket
from collections.abc import Callable, Sequence

from runwick.config.options import WorkerOptions
from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Attempt, Kind, Lane, WorkerPresence
from runwick.contracts.backends import Backend, Completion
from runwick.contracts.stores import Outlook, Store
from runwick.runtime.loops import Loop, keep_running
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.claimer import Claimer, Intake
from runwick.worker.finalizer import Finalizer
from runwick.worker.heartbeat import Heartbeat, Watchdog
from runwick.worker.recovery import Recovery
from runwick.worker.registry import Registry
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
    """One pool of one application on one backend."""

    def __init__(
        self,
        store: Store,
        backend: Backend,
        *,
        application: str,
        lanes: Sequence[Lane],
        kinds: frozenset[Kind],
        options: WorkerOptions,
        clock: Clock,
        dice: Dice,
        ids: Ids,
        bus: Bus,
        executors: int,
    ) -> None:
        self.tally = Tally(bus)
        self._store = store
        self._backend = backend
        self._application = application
        self._lanes = tuple(lanes)
        self._kinds = kinds
        self._timings: Timings = timings_of(options)
        self._clock = clock
        self._bus = bus
        self._stop = Stop.RUN
        self._failure: str | None = None
        self._finished = False
        self._changed = Wake()
        bus.listen(events.Settled, lambda _: self._changed.ring())
        self._presence = WorkerPresence(
            worker=ids.ordered(),
            application=application,
            host=socket.gethostname(),
            process=os.getpid(),
            queues=sorted({lane.queue for lane in lanes}),
            executors=executors,
        )
        self._registry = Registry()
        self._finalizer = Finalizer(
            store,
            backend,
            self._registry,
            self._timings,
            clock=clock,
            dice=dice,
            bus=bus,
            writes=lambda: self._claimer.join(),
        )
        self._claimer = Claimer(
            store,
            backend,
            self._registry,
            Intake(application, self._presence.worker, lanes, kinds),
            self._timings,
            clock=clock,
            dice=dice,
            ids=ids,
            bus=bus,
            release=self._finalizer.release,
            found_nothing=self._changed.ring,
            claims=self._finalizer.join,
        )
        self._recovery = Recovery(store, application, dice=dice, bus=bus)
        self._heartbeat = Heartbeat(
            store,
            self._registry,
            self._presence,
            self._timings,
            clock=clock,
            dice=dice,
            bus=bus,
            recovery_due=self._recovery.due,
            stop_runs=self._backend.stop_runs,
        )
        self._watchdog = Watchdog(self._registry, self._timings, clock=clock, lose=self._heartbeat.lose)

    # The backend's sink -----------------------------------------------------------------------------------------

    def completed(self, completions: Sequence[Completion]) -> None:
        self._finalizer.complete(completions)
        self._claimer.wake.ring()

    def unstarted(self, attempts: Sequence[Attempt]) -> None:
        self._finalizer.release(attempts)

    def room_changed(self) -> None:
        self._claimer.wake.ring()

    def failed(self, reason: str) -> None:
        self._failure = reason
        self.stop(Stop.FORCE)

    # Life -------------------------------------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """Why the backend gave up, if it did."""
        return self._failure

    @property
    def running(self) -> int:
        """Attempts in the backend's hands."""
        return self._backend.running()

    def stop(self, urgency: Stop = Stop.DRAIN) -> None:
        """Begin to stop, or stop more urgently. Must be called on the worker's event loop."""
        self._stop = max(self._stop, urgency)
        self._changed.ring()

    def stop_more_urgently(self) -> None:
        """What a signal does: the first drains, the next stops by force."""
        self.stop(Stop.DRAIN if self._stop is Stop.RUN else Stop.FORCE)

    async def run(self, *, until: Until | None = None) -> Outlook | None:
        """Live until stopped, or until `until` says that what is left may be left.

        Answers what was left when `until` ended it, otherwise None.

        Raises:
            RunwickError: the backend could not be started.
        """
        await self._backend.start(self)
        claiming = self._start(self._claimer, until=lambda: self._claimer.stopped)
        keeping = [self._start(loop, until=self._is_finished) for loop in self._keepers]
        settling = self._start(self._finalizer, until=self._is_finished)
        self._bus.publish(events.WorkerReady(self._application, self._presence.executors))
        try:
            outlook = await self._wait_for_the_end(until)
            await self._drain()
        finally:
            self._claimer.stop()
            await self._backend.stop()
            self._finish()
            await asyncio.gather(claiming, settling, *keeping)
        await self._say_good_bye()
        return outlook

    @property
    def _keepers(self) -> tuple[Loop, ...]:
        """The loops that keep what is held, to the very end."""
        return self._heartbeat, self._watchdog, self._recovery

    def _start(self, loop: Loop, *, until: Callable[[], bool]) -> asyncio.Task[None]:
        return asyncio.create_task(keep_running(loop, until=until, failed=self._loop_failed), name=loop.name)

    def _loop_failed(self, name: str, error: Exception) -> None:
        self._bus.publish(events.LoopFailed(name, f"{type(error).__name__}: {error}"))

    async def _wait_for_the_end(self, until: Until | None) -> Outlook | None:
        while self._stop is Stop.RUN:
            if until is not None and (outlook := await self._outlook_when_idle()) is not None and until(outlook):
                return outlook
            await self._changed.sleep(None if until is None else _EMPTY_CHECK_S)
        return None

    async def _outlook_when_idle(self) -> Outlook | None:
        """What is left, while nothing is held and the last claim found nothing."""
        if not self._claimer.found_nothing or len(self._registry):
            return None
        try:
            return await self._store.run_async(self._store.outlook(self._application, self._lanes, self._kinds))
        except Exception as error:
            self._loop_failed("outlook", error)
            return None

    async def _drain(self) -> None:
        started_s = self._clock.steady_s()
        self._claimer.stop()
        self._finalizer.draining = True
        self._finalizer.release(self._backend.take_back())
        self._finalizer.wake.ring()
        if self._stop is not Stop.RUN:
            self._bus.publish(events.DrainStarted(self._backend.running()))
        runs_until_s = started_s + self._timings.drain_s
        await self._wait_while(lambda: self._backend.running() > 0 and self._stop < Stop.FORCE, runs_until_s)
        if self._backend.running():
            self._backend.stop_by_force()
            await self._wait_while(lambda: self._backend.running() > 0, runs_until_s + self._timings.cancellation_s)
        settled_until_s = self._clock.steady_s() + self._timings.finalization_s
        await self._wait_while(
            lambda: self._claimer.is_claiming or len(self._registry) > 0,
            min(settled_until_s, started_s + self._timings.budget_s),
        )

    async def _wait_while(self, condition: Callable[[], bool], until_s: float) -> None:
        while condition() and (left_s := until_s - self._clock.steady_s()) > 0:
            await self._changed.sleep(min(left_s, 0.05))

    def _is_finished(self) -> bool:
        return self._finished

    def _finish(self) -> None:
        self._finished = True
        loops: tuple[Loop, ...] = (self._claimer, self._finalizer, *self._keepers)
        for loop in loops:
            loop.wake.ring()

    async def _say_good_bye(self) -> None:
        left = len(self._registry)
        try:
            async with asyncio.timeout(self._timings.control_timeout_s):
                await self._store.run_async(self._store.depart(self._presence))
        except Exception as error:
            self._loop_failed("good-bye", error)
        self._bus.publish(events.WorkerStopped(left))
