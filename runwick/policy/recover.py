"""What becomes of a job whose attempt's lease ran out.

A cancel that was asked for wins. An attempt that had begun is charged and closed as abandoned. One that had not is
charged nothing, but claims that never begin are counted, so that a job which kills every worker before it starts
still ends.
"""

from runwick.contracts.ambient import Dice
from runwick.contracts.attempts import Expired
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy.retries import unstarted_delay_ms
from runwick.policy.settle import settle

ABANDONED = Outcome(OutcomeKind.ABANDONED, code="lease_lost")


def recover(expired: Expired, dice: Dice) -> Settlement:
    """Decide for one expired attempt."""
    attempt = expired.attempt
    if expired.cancel_requested:
        return Settlement(attempt, Outcome(OutcomeKind.CANCELLED, code="lease_lost"), JobState.CANCELLED, "lease_lost")
    if attempt.begun:
        return settle(attempt, ABANDONED, dice)
    unstarted = attempt.unstarted + 1
    if unstarted >= attempt.policy.max_unstarted:
        return Settlement(attempt, ABANDONED, JobState.FAILED, "reservation_abandonment_exhausted")
    return Settlement(
        attempt, ABANDONED, JobState.RETRYING, "lease_lost", unstarted_delay_ms(attempt.policy, unstarted)
    )
