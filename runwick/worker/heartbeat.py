"""The heartbeat renews what the registry holds and tells the worker's presence; the watchdog notices lost leases.

    every renewal interval ± jitter     one call renews all held leases and re-arms their local deadlines
    every recovery scan ± jitter        the same call without renewals: presence, and whether recovery is due
    soon after a row was locked         the same call for the locked ones alone: they kept their deadlines
    every watchdog interval             leases past their local deadline count as lost, for good

A deadline counts from the *start* of the renewal that was confirmed, so it always lies before the store's. No answer
in time means the lease is lost, even if a late answer arrives. The watchdog is a loop of its own, because a renewal
that hangs is exactly when it is needed.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from runwick.contracts.ambient import Clock, Dice
from runwick.contracts.attempts import Attempt, Beat, Held, WorkerPresence
from runwick.contracts.stores import LeaseStore
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.line import Line
from runwick.worker.pauses import Pause
from runwick.worker.registry import Registry
from runwick.worker.timings import FAILED_ROUND_PAUSE_S, Timings


class Heartbeat:
    """Keeps the leases of one worker."""

    name = "heartbeat"

    def __init__(
        self,
        store: LeaseStore,
        line: Line,
        registry: Registry,
        presence: WorkerPresence,
        timings: Timings,
        *,
        clock: Clock,
        dice: Dice,
        bus: Bus,
        recovery_due: Callable[[], None],
        stop_runs: Callable[[Sequence[Attempt]], None],
    ) -> None:
        self.wake = Wake()
        self.pause_after_failure_s = timings.retry_initial_s
        self._store = store
        self._line = line
        self._registry = registry
        self._presence = presence
        self._timings = timings
        self._clock = clock
        self._dice = dice
        self._bus = bus
        self._recovery_due = recovery_due
        self._stop_runs = stop_runs
        self._next_renewal_s = 0.0
        self._hastened = False
        self._next_scan_s = 0.0
        self._locked: frozenset[int] = frozenset()
        self._next_locked_s = math.inf
        self._failures = Pause(timings.retry_initial_s, timings.retry_max_s)
        self._locks = Pause(timings.retry_initial_s, timings.retry_max_s)

    def hasten(self) -> None:
        """Renew at once: something is held whose deadline lies nearer than the next renewal allows for."""
        self._hastened = True
        self.wake.ring()

    async def run_once(self) -> float | None:
        if self._line.broken is not None:
            return None
        now_s = self._clock.steady_s()
        if self._hastened:
            self._next_renewal_s, self._hastened = now_s, False
        if now_s >= self._next_s:
            try:
                await self._beat(now_s)
            except Exception:
                self.pause_after_failure_s = self._failures.take_s()
                raise
            self._failures.reset()
        return 0.0 if self._hastened else max(0.0, self._next_s - self._clock.steady_s())

    @property
    def _next_s(self) -> float:
        return min(self._next_renewal_s, self._next_scan_s, self._next_locked_s)

    async def _beat(self, started_s: float) -> None:
        renews = started_s >= self._next_renewal_s
        if renews:
            held: list[Held] = self._registry.held()
        else:
            held = self._registry.held(self._locked) if self._locked else []
        scan_interval_ms = round((self._timings.scan_interval_s - self._timings.scan_jitter_s) * 1000)
        # Past the time limit nobody waits for the answer any more; the leases then live by their local deadlines.
        beat = await self._line.ask(self._store.renew(self._presence, held, self._timings.lease_ms, scan_interval_ms))
        self._registry.renewed(
            held, beat.lost | beat.locked, started_s + self._timings.attempt_deadline_s, self._clock.steady_s()
        )
        self.lose([item for item in held if item.job in beat.lost], "the store gave it to another worker or closed it")
        if beat.recovery_due:
            self._recovery_due()
        self._plan(beat, started_s, renews)

    def _plan(self, beat: Beat, started_s: float, renews: bool) -> None:
        """When to call again, and for what."""
        timings = self._timings
        if renews:
            self._next_renewal_s = started_s + self._spread_s(timings.renewal_interval_s, timings.renewal_jitter_s)
        self._next_scan_s = started_s + self._spread_s(timings.scan_interval_s, timings.scan_jitter_s)
        self._locked = beat.locked
        if beat.locked:
            self._next_locked_s = self._clock.steady_s() + self._locks.take_s()
        else:
            self._next_locked_s = math.inf
            self._locks.reset()

    def lose(self, leases: Iterable[Held], reason: str) -> None:
        """Declare these leases lost for good and have what runs under them stopped."""
        lost = self._registry.lose(leases)
        for attempt in lost:
            self._bus.publish(events.LeaseLost(attempt, reason))
        if lost:
            self._stop_runs(lost)

    def _spread_s(self, interval_s: float, jitter_s: float) -> float:
        return interval_s + jitter_s * (2 * self._dice.fraction() - 1)


class Watchdog:
    """Compares the local deadlines of one worker's leases with the clock, whatever the store is doing."""

    name = "watchdog"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(
        self, registry: Registry, timings: Timings, *, clock: Clock, lose: Callable[[Iterable[Held], str], None]
    ) -> None:
        self.wake = Wake()
        self._registry = registry
        self._interval_s = timings.watchdog_s
        self._clock = clock
        self._lose = lose

    async def run_once(self) -> float | None:
        self._lose(self._registry.past_deadline(self._clock.steady_s()), "no renewal was confirmed in time")
        return self._interval_s
