"""The way of claimed attempts to their backend, while enough of their leases is left.

held ─┬─ begun by its claim ─────────────────────────▶ backend
      ├─ reserved ▶ begin: its large payload is read ─▶ backend
      │               └─ cancelled or expired: its job is closed, and nothing runs
      └─ stopped, late, asked to stop, or not to be begun ▶ given back, uncharged
"""

from collections.abc import Callable, Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Backend
from runwick.contracts.stores import ClaimStore
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.line import Line
from runwick.worker.pools import on_the_loops_clock
from runwick.worker.registry import Registry
from runwick.worker.timings import Timings


class HandOver:
    """Hands one pool's attempts over.

    Args:
        release: takes what is given back.
        stopped: whether nothing may be started any more.
    """

    def __init__(
        self,
        store: ClaimStore,
        line: Line,
        backend: Backend,
        registry: Registry,
        timings: Timings,
        *,
        clock: Clock,
        bus: Bus,
        release: Callable[[Sequence[Attempt]], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._store = store
        self._line = line
        self._backend = backend
        self._registry = registry
        self._timings = timings
        self._clock = clock
        self._bus = bus
        self._release = release
        self._stopped = stopped

    async def take(self, attempts: Sequence[Attempt], asked_s: float) -> None:
        """Give the backend what has begun; begin the rest first, one by one, because their payloads are large.

        Args:
            attempts: the answer to one claim, held already.
            asked_s: when that claim was first sent.

        Raises:
            RunwickError: one could not be begun; it and those behind it were given back.
        """
        took_long = self._clock.steady_s() - asked_s > self._timings.claim_budget_s
        if self._stopped() or took_long or self._is_late(asked_s + self._timings.attempt_deadline_s):
            self._release(attempts)
            return
        deadline_s = asked_s + self._timings.attempt_deadline_s
        ready = [attempt for attempt in attempts if attempt.begun]
        if ready:
            self._give(ready, deadline_s)
        if len(ready) == len(attempts):
            return
        reserved = [attempt for attempt in attempts if not attempt.begun]
        try:
            while reserved and not self._stopped():
                await self._begin(reserved[0])
                del reserved[0]
        finally:
            if reserved:
                self._release(reserved)

    async def _begin(self, attempt: Attempt) -> None:
        if self._registry.is_asked(attempt):
            self._release([attempt])
            return
        answer = await self._line.insist(lambda: self._store.begin(attempt), self._timings.begin_budget_s)
        begun = answer.attempt
        if begun is None:
            self._registry.remove([attempt])
            self._bus.publish(
                events.LeaseLost(attempt, "it was no longer ours when its payload was read")
                if answer.ended is None
                else events.EndedUnbegun([attempt], answer.ended)
            )
            return
        deadline_s = self._registry.begun(begun)
        if deadline_s is None:
            return  # the lease was lost meanwhile, and that was told
        if self._stopped() or self._is_late(deadline_s) or self._registry.is_asked(begun):
            self._release([begun])
        else:
            self._give([begun], deadline_s)

    def _give(self, attempts: Sequence[Attempt], deadline_s: float) -> None:
        self._backend.hand_over(attempts, on_the_loops_clock(deadline_s, self._clock))

    def _is_late(self, deadline_s: float) -> bool:
        """Whether too little of a lease is left to start a handler."""
        return deadline_s - self._clock.steady_s() < self._timings.invocation_margin_s
