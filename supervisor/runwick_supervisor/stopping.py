"""How one run is stopped: when to insist, when to look at its stack, when to kill, and what that end is called.

    asked ─▶ token ──── half of the time ──▶ insist ──── 20 ms before the end ──▶ stack ──▶ end: killed
               │          again at three quarters                                            │
               └─ ends by itself: nothing more                     closes its providers then: until its budget is over

Causes add up, and the earliest end counts. Nothing here sends a signal or knows a process: others say what time it is
and where the run stands, and do what is answered.
"""

import enum
import math
from typing import Final, Literal, NamedTuple

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import OutcomeKind

DUMP_LEAD_S: Final = 0.02
"""A stack is asked for so long before the end, and waited for no longer than that."""
WRITTEN_POLL_S: Final = 0.002
"""A stack that has not grown for so long is complete."""
_INSIST_AT: Final = (0.5, 0.75)
"""At these parts of its time a run is interrupted even if it could find out by itself. Twice, since the first may have
come in a moment in which it could not be."""


class Verdict(NamedTuple):
    """What the death of an executor means for the attempt that it ran."""

    kind: OutcomeKind
    code: str
    text: str = ""
    """Why, as part of a sentence; empty where the way it ended says everything."""
    cause: Literal["out_of_memory", "memory_limit"] | None = None
    """For `Death.cause`, where that is more than a signal or a status."""
    of_executor: str = ""
    """Why, where a sentence about the executor says it in other words than one about its run."""


def _by_force(kind: OutcomeKind, code: str) -> Verdict:
    text, of_executor = "its executor was stopped by force", f"its run had to stop ({code})"
    return Verdict(kind, code, text, of_executor=of_executor)


CRASHED: Final = Verdict(OutcomeKind.CRASHED, "executor_crashed")
OUT_OF_MEMORY: Final = CRASHED._replace(text="killed for memory", cause="out_of_memory")
MEMORY_LIMIT: Final = Verdict(
    OutcomeKind.CRASHED,
    "memory_limit_exceeded",
    "its executor grew beyond its memory limit",
    "memory_limit",
    "it grew beyond its memory limit",
)
CLEANUP_OVERDUE: Final = Verdict(OutcomeKind.FAILED, "provider_failed", "closing its providers took too long")
LEAVES_WORK_LYING: Final = CRASHED._replace(text="it did not take what it was given")
DOES_NOT_END: Final = CRASHED._replace(text="it did not end when it was told to")
LEASE_LOST: Final = _by_force(OutcomeKind.INTERRUPTED, "lease_lost")

_BY_CAUSE: Final = (
    (CancellationCause.TIMEOUT, _by_force(OutcomeKind.TIMED_OUT, "execution_timed_out")),
    (CancellationCause.USER_REQUESTED, _by_force(OutcomeKind.CANCELLED, "cancel_requested")),
    (CancellationCause.SHUTDOWN, _by_force(OutcomeKind.INTERRUPTED, "worker_stopping")),
    (CancellationCause.LEASE_LOST, LEASE_LOST),
)
"""What counts when there are several: the first."""


class Act(enum.Enum):
    """What to do to the run now."""

    INSIST = enum.auto()
    """Interrupt it, whether or not it looks at its token."""
    DUMP = enum.auto()
    """Have its stack written."""
    KILL = enum.auto()


class Stopping:
    """One run that shall end."""

    def __init__(self, now_s: float, cleanup_budget_s: float) -> None:
        self.causes = CancellationCause(0)
        self._asked_s = now_s
        self._cleanup_budget_s = cleanup_budget_s
        self._end_s = math.inf
        self._final_s = math.inf
        """The end even of a run that closes its providers."""
        self._condemned: Verdict | None = None
        self._insisted = 0
        self._dumped_s = -math.inf

    @property
    def verdict(self) -> Verdict:
        """What its death means, if it comes to that."""
        if self._condemned is not None:
            return self._condemned
        return next(verdict for cause, verdict in _BY_CAUSE if cause in self.causes)

    @property
    def insists(self) -> bool:
        """Whether it was insisted already."""
        return self._insisted > 0

    def ask(self, cause: CancellationCause, now_s: float, within_s: float) -> bool:
        """It shall end within that time for this cause too; answers whether the run does not know the cause yet.

        With no time left, and where the lease is lost, the end is final: closing providers extends it no more.
        """
        end_s = now_s + within_s
        self._end_s = min(self._end_s, end_s)
        if within_s <= 0 or cause is CancellationCause.LEASE_LOST:
            self._final_s = min(self._final_s, end_s)
        is_new = cause not in self.causes
        self.causes |= cause
        return is_new

    def condemn(self, verdict: Verdict, now_s: float) -> None:
        """It shall end now, for something that no handler is asked about."""
        self._condemned = self._condemned or verdict
        self._end_s = self._final_s = min(self._final_s, now_s)

    def next(self, now_s: float, closing_since_s: float | None, stack_is_written: bool) -> Act | None:
        """What to do now, once for each time that it is due; None when nothing is.

        Args:
            now_s: on the steady clock.
            closing_since_s: since when the run closes its providers; None when it does not.
            stack_is_written: whether the stack that was asked for last is complete.
        """
        end_s = self._killed_s(closing_since_s)
        if now_s < end_s - DUMP_LEAD_S:
            if now_s >= self._insist_s(closing_since_s):
                self._insisted += 1
                return Act.INSIST
            return None
        if not self._dump_is_fresh(end_s):
            self._dumped_s = now_s
            return Act.DUMP
        if now_s >= end_s and (stack_is_written or now_s >= self._dumped_s + DUMP_LEAD_S):
            return Act.KILL
        return None

    def due_s(self, now_s: float, closing_since_s: float | None) -> float:
        """When `next` should be asked again."""
        end_s = self._killed_s(closing_since_s)
        if now_s < end_s - DUMP_LEAD_S or not self._dump_is_fresh(end_s):
            return min(end_s - DUMP_LEAD_S, self._insist_s(closing_since_s))
        return max(end_s, now_s + WRITTEN_POLL_S)

    def _killed_s(self, closing_since_s: float | None) -> float:
        if closing_since_s is None:
            return self._end_s
        return min(self._final_s, max(self._end_s, closing_since_s + self._cleanup_budget_s))

    def _insist_s(self, closing_since_s: float | None) -> float:
        if closing_since_s is not None or self._insisted == len(_INSIST_AT):
            return math.inf
        return self._asked_s + (self._end_s - self._asked_s) * _INSIST_AT[self._insisted]

    def _dump_is_fresh(self, end_s: float) -> bool:
        return self._dumped_s >= end_s - 2 * DUMP_LEAD_S
