"""The finalizer: one per worker, writes how attempts ended in fenced batches until it lands.

    completed ─▶ waiting ─▶ linger for company ─▶ settle ─┬─ done ───────▶ gone, ticket free
                 ▲    ▲                                   ├─ not yours ──▶ gone, lease lost
                 │    └── 50 ms to 1 s, apart from others ◀ locked
                 └─────── 1 s to 30 s ± 25 %, all together ◀ no answer

Where somebody cancelled the job, the store writes what the settlement says for that, and answers so: done as well.

A batch that is refused for its content is halved until the offender stands alone; that one ends as failed,
``settlement_rejected``. Decisions are made once, when the completion arrives, so that a repeated write says the same.
"""

import asyncio
import collections
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock, Dice
from runwick.contracts.backends import Completion
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.outcomes import Answer, ErrorDetail, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import SettleStore
from runwick.policy.settle import settle
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.line import Line
from runwick.worker.pauses import LockedOut, Repeats
from runwick.worker.registry import Registry
from runwick.worker.timings import BATCH_MAX_BYTES, CLAIM_MAX, FAILED_ROUND_PAUSE_S, LINGER_S, Timings

_URGENT: Final = frozenset({OutcomeKind.CANCELLED, OutcomeKind.TIMED_OUT, OutcomeKind.INTERRUPTED, OutcomeKind.CRASHED})
"""Ends that wait for no company: somebody wants to see that the run has stopped, or the job to run again."""

_DONE: Final = Answer.DONE


class Finalizer:
    """Settles completions."""

    name = "finalizer"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(
        self,
        store: SettleStore,
        line: Line,
        registry: Registry,
        timings: Timings,
        *,
        clock: Clock,
        dice: Dice,
        bus: Bus,
        next_completion_ms: Callable[[], float | None],
        writes: Callable[[], None],
        gone: Callable[[], None],
    ) -> None:
        self.wake = Wake()
        self._store = store
        self._line = line
        self._registry = registry
        self._clock = clock
        self._dice = dice
        self._bus = bus
        self._next_completion_ms = next_completion_ms
        self._tell_writes = writes
        self._tell_gone = gone
        self._waiting: collections.deque[Settlement] = collections.deque()
        self._locked: LockedOut[Settlement] = LockedOut()
        self._first_arrival_s = 0.0
        self._repeats = Repeats(clock, dice)
        self._budget_s = timings.completion_budget_s
        self._joins = False
        self._lingers = False
        """Whether it sleeps for company."""
        self._writing = False
        self.draining = False
        """While draining nothing lingers."""

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._waiting and not self._locked

    def complete(self, completions: Sequence[Completion]) -> None:
        """Take these ends; attempts lost meanwhile are dropped, for nothing may be written for them."""
        waiting, finalizing, dice = self._waiting, self._registry.finalizing, self._dice
        if not waiting:
            self._first_arrival_s = self._clock.steady_s()
        for completion in completions:
            attempt, outcome = completion.attempt, completion.outcome
            if finalizing(attempt):
                waiting.append(settle(attempt, outcome, dice))
                if outcome.kind in _URGENT:
                    self._joins = True
        if not self._lingers or self._joins or self._linger_s() <= 0:
            self.wake.ring()

    def join(self) -> None:
        """Somebody writes to the store now: what waits goes along, for company costs less than waiting for more."""
        if self._waiting and not self._writing:
            self._joins = True
            self.wake.ring()

    def hasten(self) -> None:
        """The store answers others again: what could not be written is tried soon."""
        self._repeats.hasten()
        self.wake.ring()

    async def run_once(self) -> float | None:
        self._lingers = False
        if self._line.broken is not None:
            self._waiting.clear()
            self._locked.clear()
            return None
        now_s = self._clock.steady_s()
        if (pause_s := self._repeats.wait_s(now_s)) > 0:
            return pause_s
        self._waiting.extend(self._locked.take(now_s))
        if not self._waiting:
            return self._locked.wait_s(now_s)
        joins, self._joins = self._joins, False
        if not joins and (linger_s := self._linger_s()) > 0:
            self._lingers = True
            return linger_s
        self._writing = True
        try:
            self._tell_writes()
            if not joins:
                await asyncio.sleep(0)  # a claim that goes along is sent first, so that one transaction holds both
            batch = self._take_batch()
            if len(self._waiting) < CLAIM_MAX:
                await self._write(batch)
            else:
                another = self._take_batch()  # sent behind the first, while the store commits that one
                errors = await asyncio.gather(self._write(batch), self._write(another), return_exceptions=True)
                for error in filter(None, errors):
                    raise error
        except Exception as error:
            # What was not written waits again, with its decisions. No wake-up shortens the pause.
            return self._pause_s(error)
        finally:
            self._writing = False
        self._repeats.reset()
        return 0.0 if self._waiting else self._locked.wait_s(self._clock.steady_s())

    def _linger_s(self) -> float:
        """How long to wait for company: only while another completion is expected soon."""
        if self.draining or len(self._waiting) >= CLAIM_MAX:
            return 0.0
        expected_ms = self._next_completion_ms()
        if expected_ms is None or expected_ms > LINGER_S * 1000:
            return 0.0
        return self._first_arrival_s + LINGER_S - self._clock.steady_s()

    def _take_batch(self) -> list[Settlement]:
        waiting = self._waiting
        batch: list[Settlement] = []
        size_bytes = 0
        while waiting and len(batch) < CLAIM_MAX:
            outcome = waiting[0].outcome
            if outcome.result is not None or outcome.error is not None or outcome.black_box is not None:
                size_bytes += _content_bytes(outcome)
                if batch and size_bytes > BATCH_MAX_BYTES:
                    break
            batch.append(waiting.popleft())
        self._first_arrival_s = self._clock.steady_s()
        return batch

    async def _write(self, batch: list[Settlement]) -> None:
        """Settle these; what could not be written for want of an answer waits again, at the head."""
        started_s = self._clock.steady_s()
        try:
            answers = await self._line.ask(self._store.settle(batch))
        except SettlementRejected as error:
            await self._write_apart(batch, error)
            return
        except Exception:
            self._waiting.extendleft(reversed(batch))
            raise
        done: list[Settlement] = []
        locked: list[Settlement] = []
        for settlement, answer in zip(batch, answers, strict=True):
            if answer is _DONE:
                done.append(settlement)
            elif answer is Answer.CANCELLED:
                done.append(_as_cancelled(settlement))
            elif answer is Answer.LOCKED:
                locked.append(settlement)
            else:
                self._registry.remove([settlement.attempt])
                self._bus.publish(events.LeaseLost(settlement.attempt, "its result came after the lease had gone"))
        self._locked.answered(locked, self._clock.steady_s())
        self._registry.remove([settlement.attempt for settlement in done])
        self._tell_gone()
        if done:
            self._bus.publish(events.Settled(done, self._clock.steady_s() - started_s))

    async def _write_apart(self, batch: list[Settlement], error: SettlementRejected) -> None:
        """Find the one whose content the store refuses, by halving; the others must not suffer for it."""
        if len(batch) == 1:
            await self._write_without_content(batch[0], error)
            return
        middle = len(batch) // 2
        try:
            await self._write(batch[:middle])
        except Exception:
            self._waiting.extend(batch[middle:])
            raise
        await self._write(batch[middle:])

    async def _write_without_content(self, refused: Settlement, error: SettlementRejected) -> None:
        """Settle it as refused. If even that is refused, let go of it, so that its lease runs out and recovery
        closes it: held for ever, it would be renewed for ever."""
        attempt = refused.attempt
        self._bus.publish(events.SettlementRefused(attempt, str(error)))
        if refused.code == "settlement_rejected":
            self._registry.remove([attempt])
            self._bus.publish(events.LeaseLost(attempt, "the store refuses its end without content too"))
            return
        await self._write([_without_content(refused)])

    def _pause_s(self, error: Exception) -> float | None:
        if self._line.broken is not None:
            return 0.0  # the next round forgets what waits
        pause_s, failing_s = self._repeats.failed()
        overdue = failing_s > self._budget_s
        delayed = events.SettlementDelayed(len(self._waiting), self._repeats.tries, str(error), pause_s, overdue)
        self._bus.publish(delayed)
        return pause_s


def _content_bytes(outcome: Outcome) -> int:
    """How much of the batch's size limit it takes, about: text counts a byte a character, as nearly all of it is."""
    size_bytes = len(outcome.result) if outcome.result is not None else 0
    if outcome.error is not None:
        size_bytes += len(outcome.error.message) + len(outcome.error.text)
    if outcome.black_box is not None:
        size_bytes += len(outcome.black_box.lines) + len(outcome.black_box.stack)
    return size_bytes


def _as_cancelled(settlement: Settlement) -> Settlement:
    """What the store wrote of it, for those who hear of it."""
    instead = settlement.if_cancelled
    if instead is None:
        return settlement
    outcome = msgspec.structs.replace(settlement.outcome, kind=instead.outcome, code=instead.outcome_code)
    return Settlement(settlement.attempt, outcome, JobState.CANCELLED, instead.code)


def _without_content(refused: Settlement) -> Settlement:
    """The same end without what could not be stored: the job fails, and the reason is in the record."""
    outcome = Outcome(
        OutcomeKind.FAILED_PERMANENTLY,
        code="settlement_rejected",
        error=ErrorDetail("settlement_rejected", "the store refused the content of this result"),
        usage=refused.outcome.usage,
        begun_at_ms=refused.outcome.begun_at_ms,
    )
    return Settlement(refused.attempt, outcome, JobState.FAILED, "settlement_rejected")
