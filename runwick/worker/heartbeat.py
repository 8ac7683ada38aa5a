"""The heartbeat renews what the registry holds, tells what the worker does and hears what is asked of it; the watchdog
notices lost leases.

    every renewal interval ± jitter     one call renews all held leases and re-arms their local deadlines
    every recovery scan ± jitter        the same call without renewals: presence, and whether recovery is due
    every 0.9 s, or the safety poll     the same, while anything is held: begun marks and what the executors do go out,
                                        cancels and looks come in; a hint of the store's hastens it
    soon after a row was locked         the same call for the locked ones alone: they kept their deadlines
    every watchdog interval             leases past their local deadline count as lost, for good

A deadline counts from the *start* of the renewal that was confirmed, so it always lies before the store's. No answer
in time means the lease is lost, even if a late answer arrives. The watchdog is a loop of its own, because a renewal
that hangs is exactly when it is needed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from runwick.contracts.activity import Beat, StackAnswer, StackRequest
from runwick.contracts.ambient import Clock, Dice
from runwick.contracts.attempts import Attempt, Held
from runwick.contracts.stores import LeaseStore
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.line import Line
from runwick.worker.pauses import Pause
from runwick.worker.registry import Registry
from runwick.worker.reports import Reports
from runwick.worker.timings import FAILED_ROUND_PAUSE_S, REQUEST_PAUSE_S, Timings


class Runs(NamedTuple):
    """How a heartbeat reaches the runs whose leases it keeps."""

    extend: Callable[[Mapping[bytes, float]], None]
    """Takes the new local deadlines of some, by attempt id."""
    lost: Callable[[Sequence[Attempt], float], None]
    """Has those stopped whose leases are lost, within so many seconds."""
    cancel: Callable[[Sequence[Held]], None]
    look: Callable[[Sequence[StackRequest]], None]


class Heartbeat:
    """Keeps the leases of one worker."""

    name = "heartbeat"

    def __init__(
        self,
        store: LeaseStore,
        line: Line,
        registry: Registry,
        reports: Reports,
        runs: Runs,
        timings: Timings,
        *,
        clock: Clock,
        dice: Dice,
        bus: Bus,
        recovery_due: Callable[[], None],
    ) -> None:
        self.wake = Wake()
        self.pause_after_failure_s = timings.retry_initial_s
        self._store = store
        self._line = line
        self._registry = registry
        self._reports = reports
        self._runs = runs
        self._timings = timings
        self._clock = clock
        self._dice = dice
        self._bus = bus
        self._recovery_due = recovery_due
        self._next_renewal_s = 0.0
        self._hastened = False
        self._next_scan_s = 0.0
        self._next_poll_s = math.inf
        self._called_s = -math.inf
        self._requested = False
        self._idle = True
        """Whether it sleeps with nothing held: then nobody is asked for cancels."""
        self._locked: frozenset[int] = frozenset()
        self._next_locked_s = math.inf
        self._failures = Pause(timings.retry_initial_s, timings.retry_max_s)
        self._locks = Pause(timings.retry_initial_s, timings.retry_max_s)

    def hasten(self) -> None:
        """Renew at once: something is held whose deadline lies nearer than the next renewal allows for."""
        self._hastened = True
        self.wake.ring()

    def holds(self) -> None:
        """Something is held: from now on cancels may come."""
        if self._idle:
            self._idle = False
            self._next_poll_s = self._clock.steady_s() + self._timings.request_poll_s
            self.wake.ring()

    def requested(self) -> None:
        """The store hints that something is asked of this worker. Safe from any thread."""
        self._requested = True
        self.wake.ring()

    def looked(self, answer: StackAnswer) -> None:
        """A stack is there that somebody waits for."""
        self._reports.looked(answer)
        self.requested()

    async def run_once(self) -> float | None:
        if self._line.broken is not None:
            return None
        now_s = self._clock.steady_s()
        if self._hastened:
            self._next_renewal_s, self._hastened = now_s, False
        if self._requested:
            self._requested = False
            self._next_poll_s = min(self._next_poll_s, self._called_s + REQUEST_PAUSE_S)
        if now_s >= self._next_s:
            try:
                await self._beat(now_s)
            except Exception:
                self.pause_after_failure_s = self._failures.take_s()
                raise
            self._failures.reset()
        self._idle = not len(self._registry)
        return 0.0 if self._hastened else max(0.0, self._next_s - self._clock.steady_s())

    @property
    def _next_s(self) -> float:
        next_s = min(self._next_renewal_s, self._next_scan_s, self._next_locked_s)
        return min(next_s, self._next_poll_s) if len(self._registry) else next_s

    async def _beat(self, started_s: float) -> None:
        renews = started_s >= self._next_renewal_s
        if renews:
            held: list[Held] = self._registry.held()
        else:
            held = self._registry.held(self._locked) if self._locked else []
        scan_interval_ms = round((self._timings.scan_interval_s - self._timings.scan_jitter_s) * 1000)
        report = self._reports.next()
        self._called_s = started_s
        # Past the time limit nobody waits for the answer any more; the leases then live by their local deadlines.
        beat = await self._line.ask(self._store.renew(report, held, self._timings.lease_ms, scan_interval_ms))
        self._reports.told(report)
        self._runs.extend(
            self._registry.renewed(
                held, beat.lost | beat.locked, started_s + self._timings.attempt_deadline_s, self._clock.steady_s()
            )
        )
        self.lose([item for item in held if item.job in beat.lost], "the store gave it to another worker or closed it")
        self._runs.cancel(beat.cancels)
        self._runs.look(beat.looks)
        if beat.recovery_due:
            self._recovery_due()
        self._plan(beat, started_s, renews)

    def _plan(self, beat: Beat, started_s: float, renews: bool) -> None:
        """When to call again, and for what."""
        timings = self._timings
        if renews:
            self._next_renewal_s = started_s + self._spread_s(timings.renewal_interval_s, timings.renewal_jitter_s)
        self._next_scan_s = started_s + self._spread_s(timings.scan_interval_s, timings.scan_jitter_s)
        self._next_poll_s = started_s + timings.request_poll_s
        self._locked = beat.locked
        if beat.locked:
            self._next_locked_s = self._clock.steady_s() + self._locks.take_s()
        else:
            self._next_locked_s = math.inf
            self._locks.reset()

    def lose(self, leases: Iterable[Held], reason: str, within_s: float = 0.0) -> None:
        """Declare these leases lost for good and have what runs under them stopped, within so many seconds."""
        lost = self._registry.lose(leases)
        for attempt in lost:
            self._bus.publish(events.LeaseLost(attempt, reason))
        if lost:
            self._runs.lost(lost, within_s)

    def _spread_s(self, interval_s: float, jitter_s: float) -> float:
        return interval_s + jitter_s * (2 * self._dice.fraction() - 1)


class Watchdog:
    """Compares the local deadlines of one worker's leases with the clock, whatever the store is doing."""

    name = "watchdog"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(
        self, registry: Registry, timings: Timings, *, clock: Clock, lose: Callable[[Iterable[Held], str, float], None]
    ) -> None:
        self.wake = Wake()
        self._registry = registry
        self._interval_s = timings.watchdog_s
        self._grace_s = timings.lost_grace_s
        self._clock = clock
        self._lose = lose

    async def run_once(self) -> float | None:
        late = self._registry.past_deadline(self._clock.steady_s())
        self._lose(late, "no renewal was confirmed in time", self._grace_s)
        return self._interval_s
