"""Passes on what others want of a worker's runs: that they stop, or show their stack.

    the store: cancelled ─▶ ask, once per lease ─▶ backend ─▶ token · exception · kill
                                │ not handed over yet: it is given back, which closes its job as cancelled
                                └ ended already: its settlement finds the cancel
    the store: look      ─▶ look, until it is answered ─▶ backend ─▶ the next report
    the operator of this process: show ─▶ look ─▶ backend ─▶ told here, and nowhere else

The store repeats its own until they are done, so nothing is lost when one of them comes to nothing.
"""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.activity import ExecutorActivity, StackAnswer, StackRequest
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Held
from runwick.contracts.cancelling import CancellationCause
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.pools import Pools
from runwick.worker.registry import Registry
from runwick.worker.timings import Timings

LOOK_AGAIN_S: Final = 6.0
"""A backend that has not given a stack by then gives none to that asking."""


class Asker:
    """Asks the runs of one worker."""

    def __init__(self, registry: Registry, pools: Pools, timings: Timings, *, clock: Clock, bus: Bus) -> None:
        self._registry = registry
        self._pools = pools
        self._grace_s = timings.cancellation_grace_s
        self._bus = bus
        self._clock = clock
        self._looks: dict[bytes, float] = {}
        """Attempts whose stack a backend has been asked for and has not given, and since when."""
        self._shows: dict[bytes, ExecutorActivity] = {}
        """The same, for the operator of this process; with who ran them then."""

    def cancel(self, cancels: Sequence[Held]) -> None:
        """Somebody cancelled the jobs of these leases."""
        cause = CancellationCause.USER_REQUESTED
        asked = [attempt for lease in cancels if (attempt := self._registry.ask(lease, cause)) is not None]
        if not asked:
            return
        for attempt in asked:
            self._bus.publish(events.AttemptAsked(attempt, cause))
        self._pools.ask(asked, cause, self._grace_s)

    def look(self, requests: Sequence[StackRequest]) -> None:
        """Somebody wants to see the stacks of these."""
        wanted = {request.attempt_id for request in requests}
        # What is wanted no more has been answered, or has ended; what came to nothing is asked for again.
        since_s = self._clock.steady_s() - LOOK_AGAIN_S
        self._looks = {each: at_s for each, at_s in self._looks.items() if each in wanted and at_s > since_s}
        if new := sorted(wanted - self._looks.keys()):
            self._looks.update(dict.fromkeys(new, self._clock.steady_s()))
            self._pools.look(new)

    def show(self) -> None:
        """The operator of this process wants to see the stacks of everything that runs."""
        self._shows = {doing.attempt_id: doing for doing in self._pools.doing() if doing.attempt_id is not None}
        self._pools.look(sorted(self._shows))

    def looked(self, answer: StackAnswer) -> bool:
        """A backend has given it; answers whether the store waits for it."""
        if (doing := self._shows.pop(answer.attempt_id, None)) is not None:
            self._bus.publish(events.StackShown(doing, answer.text))
        wanted = answer.attempt_id in self._looks
        self._looks.pop(answer.attempt_id, None)
        return wanted
