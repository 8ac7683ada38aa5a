"""From what a run ended in to what becomes of its job.

succeeded ─────────────────────────────────────────────▶ succeeded
cancelled ─────────────────────────────────────────────▶ cancelled
failed permanently ────────────────────────────────────▶ failed (its own code)
crashed, for the last time that max_crashes allows ────▶ failed (poison_job)
failed · timed out · interrupted · crashed · abandoned
    executions left ───────────────────────────────────▶ retrying
    none left ─────────────────────────────────────────▶ failed (executions_exhausted)

Where somebody cancelled the job meanwhile, only a success and an end for good that the handler chose stand; everything
that would run again, or ends because a budget is used up, is written as cancelled instead. Whether a cancel stands is
known under the row's lock alone, so a settlement carries both.
"""

from typing import Final

from runwick.contracts.ambient import Dice
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy.retries import retry_delay_ms

_NEED_NOT_WAIT: Final = frozenset({OutcomeKind.INTERRUPTED, OutcomeKind.ABANDONED})
"""Nothing speaks against running these again at once: the fault was the worker's, not the job's."""
_SUCCEEDED: Final = OutcomeKind.SUCCEEDED
_DONE_WITH: Final = JobState.SUCCEEDED
"""Nearly every run ends so, and before Python 3.12 looking a member up in its class is a call."""


def settle(attempt: Attempt, outcome: Outcome, dice: Dice) -> Settlement:
    """Decide what one outcome means for its job. The delay is drawn here, once, and repeated with the write."""
    kind = outcome.kind
    if kind is _SUCCEEDED:
        return Settlement(attempt, outcome, _DONE_WITH)
    if kind is OutcomeKind.CANCELLED:
        return Settlement(attempt, outcome, JobState.CANCELLED, outcome.code)
    if kind is OutcomeKind.FAILED_PERMANENTLY:
        return Settlement(attempt, outcome, JobState.FAILED, outcome.code)
    if_cancelled = IfCancelled(kind, outcome.code)
    if kind is OutcomeKind.CRASHED and attempt.crashes + 1 >= attempt.policy.max_crashes:
        return Settlement(attempt, outcome, JobState.FAILED, "poison_job", if_cancelled=if_cancelled)
    if attempt.execution >= attempt.policy.max_executions:
        return Settlement(attempt, outcome, JobState.FAILED, "executions_exhausted", if_cancelled=if_cancelled)
    delay_ms = _delay_ms(attempt, outcome, dice)
    return Settlement(attempt, outcome, JobState.RETRYING, outcome.code, delay_ms, if_cancelled)


def _delay_ms(attempt: Attempt, outcome: Outcome, dice: Dice) -> int | None:
    if outcome.kind in _NEED_NOT_WAIT:
        return None
    if outcome.retry_after_ms is not None:
        return min(outcome.retry_after_ms, attempt.policy.retry_max_ms)
    return retry_delay_ms(attempt.policy, attempt.execution, dice)
