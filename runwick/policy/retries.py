"""How long a job waits before its next try."""

from runwick.contracts.ambient import Dice
from runwick.contracts.policies import JobPolicy


def retry_delay_ms(policy: JobPolicy, execution: int, dice: Dice) -> int:
    """The delay after the failed run number `execution` (from 1), in milliseconds.

    Exponential with equal jitter: nominal = initial × 2^(execution − 1), capped at the maximum; the delay is drawn
    evenly between half the nominal and all of it, so that jobs which failed together come back apart.
    """
    return _half_random_ms(_doubled_ms(policy.retry_initial_ms, policy.retry_max_ms, execution), dice)


def unstarted_delay_ms(policy: JobPolicy, unstarted: int) -> int:
    """The delay after claim number `unstarted` in a row that never began (from 1); no jitter."""
    return _doubled_ms(policy.unstarted_initial_ms, policy.unstarted_max_ms, unstarted)


def _doubled_ms(initial_ms: int, max_ms: int, times: int) -> int:
    # Shifting by the budget's maximum (100) stays exact in Python; the cap bounds the value.
    return min(max_ms, initial_ms << max(0, times - 1))


def _half_random_ms(nominal_ms: int, dice: Dice) -> int:
    half_ms = nominal_ms / 2
    return max(1, round(half_ms + half_ms * dice.fraction()))
