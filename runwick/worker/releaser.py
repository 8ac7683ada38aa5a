"""The releaser: one per worker, gives back what provably never reached its handler.

    unstarted ─▶ waiting ─▶ release ─┬─ done ───────▶ gone, uncharged, ticket free
                 ▲    ▲              ├─ cancelled ──▶ gone, uncharged: its job ended, for somebody cancelled it
                 │    │              ├─ not yours ──▶ gone: given back by an earlier try, or the lease was lost
                 │    └── 50 ms to 1 s, apart from others ◀ locked
                 └─────── 1 s to 30 s ± 25 %, all together ◀ no answer

It is a loop of its own, so that a release which cannot be written holds up no result, nor the reverse.
"""

from collections.abc import Callable, Sequence

from runwick.contracts.ambient import Clock, Dice
from runwick.contracts.attempts import Attempt
from runwick.contracts.errors import OutcomeUnknown
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import ClaimStore
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.line import Line
from runwick.worker.pauses import LockedOut, Repeats
from runwick.worker.registry import Registry
from runwick.worker.timings import CLAIM_MAX, FAILED_ROUND_PAUSE_S


class Releaser:
    """Releases attempts."""

    name = "releaser"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(
        self,
        store: ClaimStore,
        line: Line,
        registry: Registry,
        *,
        clock: Clock,
        dice: Dice,
        bus: Bus,
        gone: Callable[[], None],
    ) -> None:
        self.wake = Wake()
        self._store = store
        self._line = line
        self._registry = registry
        self._clock = clock
        self._bus = bus
        self._tell_gone = gone
        self._waiting: list[Attempt] = []
        self._locked: LockedOut[Attempt] = LockedOut()
        self._repeats = Repeats(clock, dice)
        self._maybe_released: set[bytes] = set()
        """Attempts of tries whose answer was lost: *not yours* then most likely means that they were given back."""

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Give these back; attempts lost meanwhile are dropped, for nothing may be written for them."""
        self._waiting += [attempt for attempt in attempts if self._registry.finalizing(attempt)]
        self.wake.ring()

    def hasten(self) -> None:
        """The store answers others again: what could not be written is tried soon."""
        self._repeats.hasten()
        self.wake.ring()

    async def run_once(self) -> float | None:
        if self._line.broken is not None:
            self._waiting.clear()
            self._locked.clear()
            return None
        now_s = self._clock.steady_s()
        if (pause_s := self._repeats.wait_s(now_s)) > 0:
            return pause_s
        self._waiting += self._locked.take(now_s)
        if not self._waiting:
            return self._locked.wait_s(now_s)
        batch, self._waiting = self._waiting[:CLAIM_MAX], self._waiting[CLAIM_MAX:]
        try:
            answers = await self._line.ask(self._store.release(batch))
        except Exception as error:
            self._waiting = batch + self._waiting
            if isinstance(error, OutcomeUnknown):
                self._maybe_released.update(attempt.attempt_id for attempt in batch)
            pause_s, _ = self._repeats.failed()
            return pause_s  # the line told it; no wake-up shortens the pause
        self._repeats.reset()
        self._sort(batch, answers)
        return 0.0 if self._waiting else self._locked.wait_s(self._clock.steady_s())

    def _sort(self, batch: Sequence[Attempt], answers: Sequence[Answer]) -> None:
        """Let go of what was answered, and say what became of it."""
        answered = list(zip(batch, answers, strict=True))
        self._locked.answered(
            [attempt for attempt, answer in answered if answer is Answer.LOCKED], self._clock.steady_s()
        )
        released: list[Attempt] = []
        cancelled: list[Attempt] = []
        for attempt, answer in answered:
            if answer is Answer.LOCKED:
                continue
            if answer is Answer.CANCELLED:
                cancelled.append(attempt)
            elif answer is Answer.DONE or attempt.attempt_id in self._maybe_released:
                released.append(attempt)
            else:
                self._bus.publish(events.LeaseLost(attempt, "it was given back after the lease had gone"))
            self._registry.remove([attempt])
            self._maybe_released.discard(attempt.attempt_id)
        self._tell_gone()
        if released:
            self._bus.publish(events.Released(released))
        if cancelled:
            self._bus.publish(events.EndedUnbegun(cancelled, "cancel_requested"))
