"""The heartbeat: renews what the registry holds, tells the worker's presence, and notices lost leases.

    every renewal interval ± jitter     one call renews all held leases and re-arms their local deadlines
    every recovery scan ± jitter        the same call without renewals: presence, and whether recovery is due
    every watchdog interval             leases past their local deadline count as lost, for good

A deadline counts from the *start* of the renewal that was confirmed, so it always lies before the store's. No answer
in time means the lease is lost, even if a late answer arrives.
"""

import asyncio
from collections.abc import Callable, Sequence

from runwick.contracts.ambient import Clock, Dice
from runwick.contracts.attempts import Attempt, Held, WorkerPresence
from runwick.contracts.stores import LeaseStore
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.registry import Registry
from runwick.worker.timings import Timings


class Heartbeat:
    """Keeps the leases of one worker."""

    name = "heartbeat"

    def __init__(
        self,
        store: LeaseStore,
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
        self.pause_after_failure_s = timings.retry_max_s
        self._store = store
        self._registry = registry
        self._presence = presence
        self._timings = timings
        self._clock = clock
        self._dice = dice
        self._bus = bus
        self._recovery_due = recovery_due
        self._stop_runs = stop_runs
        self._next_renewal_s = 0.0
        self._next_scan_s = 0.0

    async def run_once(self) -> float | None:
        now_s = self._clock.steady_s()
        self._lose(self._registry.past_deadline(now_s), "no renewal was confirmed in time")
        if now_s >= min(self._next_renewal_s, self._next_scan_s):
            await self._beat(now_s)
        now_s = self._clock.steady_s()
        next_beat_s = min(self._next_renewal_s, self._next_scan_s)
        return max(0.0, min(next_beat_s - now_s, self._timings.watchdog_s))

    async def _beat(self, started_s: float) -> None:
        renews = started_s >= self._next_renewal_s
        held: list[Held] = self._registry.held() if renews else []
        scan_interval_ms = round((self._timings.scan_interval_s - self._timings.scan_jitter_s) * 1000)
        # Past the limit nobody waits for the answer any more; the leases then live by their local deadlines.
        async with asyncio.timeout(self._timings.control_timeout_s):
            beat = await self._store.run_async(
                self._store.renew(self._presence, held, self._timings.lease_ms, scan_interval_ms)
            )
        self._registry.renewed(held, beat.lost | beat.locked, started_s + self._timings.attempt_deadline_s)
        self._lose(beat.lost, "the store gave it to another worker or closed it")
        if beat.recovery_due:
            self._recovery_due()
        if renews:
            self._next_renewal_s = started_s + self._spread_s(
                self._timings.renewal_interval_s, self._timings.renewal_jitter_s
            )
        self._next_scan_s = started_s + self._spread_s(self._timings.scan_interval_s, self._timings.scan_jitter_s)

    def _lose(self, jobs: Sequence[int] | frozenset[int], reason: str) -> None:
        lost = self._registry.lose(jobs)
        for attempt in lost:
            self._bus.publish(events.LeaseLost(attempt, reason))
        if lost:
            self._stop_runs(lost)

    def _spread_s(self, interval_s: float, jitter_s: float) -> float:
        return interval_s + jitter_s * (2 * self._dice.fraction() - 1)
