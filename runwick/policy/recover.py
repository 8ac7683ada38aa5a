"""What becomes of a job whose attempt nobody keeps any more: its lease ran out, or its worker is known to be dead.

An attempt that had begun is charged and closed as abandoned. One that had not is charged nothing, but claims that never
begin are counted, so that a job which kills every worker before it starts still ends. A cancel that was asked for wins
over all of it.
"""

from typing import Final

import msgspec

from runwick.contracts.ambient import Dice
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy.retries import unstarted_delay_ms
from runwick.policy.settle import settle

_IF_CANCELLED: Final = IfCancelled(OutcomeKind.CANCELLED, "cancel_requested")


def recover(attempt: Attempt, dice: Dice) -> Settlement:
    """Decide for an attempt whose lease ran out."""
    return _abandon(attempt, "lease_lost", dice)


def recover_from_dead(attempt: Attempt, dice: Dice) -> Settlement:
    """Decide for an attempt whose worker is known to be dead, with everything it ran."""
    return _abandon(attempt, "worker_died", dice)


def _abandon(attempt: Attempt, code: str, dice: Dice) -> Settlement:
    abandoned = Outcome(OutcomeKind.ABANDONED, code=code)
    if attempt.begun:
        return msgspec.structs.replace(settle(attempt, abandoned, dice), if_cancelled=_IF_CANCELLED)
    unstarted = attempt.unstarted + 1
    if unstarted >= attempt.policy.max_unstarted:
        why = "reservation_abandonment_exhausted"
        return Settlement(attempt, abandoned, JobState.FAILED, why, if_cancelled=_IF_CANCELLED)
    delay_ms = unstarted_delay_ms(attempt.policy, unstarted)
    return Settlement(attempt, abandoned, JobState.RETRYING, code, delay_ms, _IF_CANCELLED)
