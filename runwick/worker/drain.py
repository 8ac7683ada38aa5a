"""How a worker's runs end, measured from the moment of the stop and inside one budget.

    nothing is claimed ▶ what has not begun is given back ▶ what runs may end ▶ it is asked to stop ▶ it is killed
                                                                                     ▶ what is known is settled

Leases are renewed and cancels obeyed all the while. Each more urgent stop skips to the next of these.
"""

import enum
from collections.abc import Callable

from runwick.contracts.ambient import Clock
from runwick.contracts.cancelling import CancellationCause
from runwick.runtime.wake import Wake
from runwick.worker.parts import Parts
from runwick.worker.timings import Timings

_LOOK_S = 0.05
"""How often it is looked at least whether a step is over."""


class Stop(enum.IntEnum):
    """How urgently a worker stops. It only ever rises."""

    RUN = 0
    DRAIN = 1
    """Let running handlers end, within the budget."""
    CANCEL = 2
    """Ask running handlers to stop, now."""
    KILL = 3
    """Stop them by force, now."""


class Drain:
    """One worker's drain.

    Args:
        changed: rings when something ended, or the stop became more urgent.
        urgency: how urgently the worker stops now.
    """

    def __init__(
        self, parts: Parts, timings: Timings, *, clock: Clock, changed: Wake, urgency: Callable[[], Stop]
    ) -> None:
        self._parts = parts
        self._timings = timings
        self._clock = clock
        self._changed = changed
        self._urgency = urgency

    def begin(self) -> int:
        """Claim nothing more, and give back what has not begun; answers how many runs are left."""
        parts = self._parts
        parts.stations.stop_claiming()
        parts.finalizer.draining = True
        parts.releaser.release(parts.pools.take_back())
        parts.finalizer.wake.ring()
        return parts.pools.running()

    async def finish(self, started_s: float) -> None:
        """Let what runs end, then make it; wait until everything that is known of it has been written."""
        parts, timings = self._parts, self._timings
        runs_until_s = started_s + timings.drain_s
        await self._wait_while(lambda: parts.pools.running() > 0 and self._urgency() < Stop.CANCEL, runs_until_s)
        if parts.pools.running():
            await self._end_runs(min(self._clock.steady_s(), runs_until_s) + timings.cancellation_s)
        settled_until_s = self._clock.steady_s() + timings.finalization_s
        await self._wait_while(
            # Nothing is written for what was lost, which includes what cannot be stopped here.
            lambda: parts.stations.is_claiming or parts.registry.owed > 0,
            min(settled_until_s, started_s + timings.budget_s),
        )

    async def _end_runs(self, until_s: float) -> None:
        """Ask everything that runs to stop, and kill what has not by `until_s`."""
        pools = self._parts.pools
        left_s = max(0.0, until_s - self._clock.steady_s())
        pools.ask(None, CancellationCause.SHUTDOWN, min(self._timings.cancellation_grace_s, left_s))
        await self._wait_while(lambda: pools.running() > 0 and self._urgency() < Stop.KILL, until_s)
        if pools.running():
            pools.ask(None, CancellationCause.SHUTDOWN, 0.0)

    async def _wait_while(self, condition: Callable[[], bool], until_s: float) -> None:
        while condition() and (left_s := until_s - self._clock.steady_s()) > 0:
            await self._changed.sleep(min(left_s, _LOOK_S))
