"""The recovery pass: closes attempts whose lease ran out, whoever held them, then jobs that expired while they waited,
and looks whether the lines of all limits move.

Every worker asks each scan interval, the store lets one through per application. The pass is not a job and holds
nothing between its transactions, so a worker that dies in it holds nothing back. What a dead predecessor on the same
host left is closed apart from it, at once, when its death is proven.
"""

import functools

from runwick.contracts.ambient import Dice
from runwick.contracts.stores import LeaseStore
from runwick.policy.recover import recover, recover_from_dead
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.line import Line
from runwick.worker.timings import FAILED_ROUND_PAUSE_S, RECOVERY_LIMIT, TEND_LIMIT, Timings


class Recovery:
    """One worker's share of the recovery of its application."""

    name = "recovery"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(
        self, store: LeaseStore, line: Line, application: str, timings: Timings, *, dice: Dice, bus: Bus
    ) -> None:
        self.wake = Wake()
        self._store = store
        self._line = line
        self._application = application
        self._budget_s = timings.completion_budget_s
        self._decide = functools.partial(recover, dice=dice)
        self._decide_for_dead = functools.partial(recover_from_dead, dice=dice)
        self._bus = bus
        self._due = False
        self._tended: bytes | None = None
        """The last limit that this pass has looked at."""

    def due(self) -> None:
        """The store chose this worker for the pass."""
        self._due = True
        self.wake.ring()

    async def run_once(self) -> float | None:
        if not self._due or self._line.broken is not None:
            return None
        # A pass whose answer is lost stays due: what it closed is closed, and the next one finds the rest.
        closed = await self._line.ask(self._store.recover(self._application, self._decide, RECOVERY_LIMIT))
        if closed:
            self._bus.publish(events.Recovered(closed))
        if closed == RECOVERY_LIMIT:
            return 0.0
        expired = await self._line.ask(self._store.expire(self._application, RECOVERY_LIMIT))
        if expired:
            self._bus.publish(events.Expired(expired))
        if expired == RECOVERY_LIMIT:
            return 0.0
        self._tended = await self._tend()
        self._due = self._tended is not None
        return 0.0 if self._due else None

    async def _tend(self) -> bytes | None:
        """Look through some limits; answers where to go on, None at the end."""
        tended = await self._line.ask(self._store.tend(self._application, self._tended, TEND_LIMIT))
        if tended.called:
            self._bus.publish(events.LinesMoved(tended.called))
        if tended.mended:
            self._bus.publish(events.LimitsMended(tended.mended))
        return tended.after

    async def inherit(self, predecessor: bytes) -> int:
        """Close everything that a worker left which is known to be dead, with all that it ran; answers how much.

        Raises:
            RunwickError: the store does not answer, or refuses; calling it again goes on where it ended.
        """
        total = 0
        while True:
            closed = await self._line.insist(
                lambda: self._store.recover(
                    self._application, self._decide_for_dead, RECOVERY_LIMIT, worker=predecessor
                ),
                self._budget_s,
            )
            total += closed
            if closed < RECOVERY_LIMIT:
                break
        if total:
            self._bus.publish(events.PredecessorRecovered(predecessor, total))
        return total
