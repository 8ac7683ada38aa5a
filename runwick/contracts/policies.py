"""The values that decide a job's retries, frozen onto the job when it is dispatched.

Values live here, the functions that apply them in `runwick.policy`.
"""

import enum
from typing import Final, Literal

import msgspec

EXECUTIONS_MAX: Final = 100


class JobPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long one job may run. Defaults are the library's."""

    max_executions: int = 3
    """Attempts that may be authorised to call the handler in one generation, 1 to 100."""
    execution_timeout_ms: int | None = None
    """Longest time from the begun mark to the end of cleanup; None means no limit."""
    retry_initial_ms: int = 5_000
    """Nominal delay after the first failed execution; doubles with each further one."""
    retry_max_ms: int = 60_000
    """Cap of the nominal delay."""
    max_unstarted: int = 5
    """Claims in a row that never began before the job fails, 1 to 100."""
    unstarted_initial_ms: int = 1_000
    """Delay before a claim that never began is due again; doubles."""
    unstarted_max_ms: int = 30_000
    """Cap of that delay."""
    max_crashes: int = 3
    """Attempts of one generation that may kill their executor before the job fails as `poison_job`."""
    error_detail: Literal["full", "message"] = "full"
    """What is kept of an error: all of it, or type and message alone (at most 1,000 characters, no traceback, no black
    box)."""


LANE_WEIGHTS: Final = (6, 3, 1)
"""Of the high, medium and low lane of a queue, where a pool says nothing else."""
WEIGHT_MAX: Final = 1_000
AGING_CLAIMS: Final = 8
"""After so many jobs claimed from a queue its lower lanes are looked at for…"""
AGING_MS: Final = 60_000
"""…jobs that have been due for so long."""


class LaneSelection(enum.StrEnum):
    """How a pool chooses among the lanes of one queue. Between queues the choice is always weighted."""

    WEIGHTED = "weighted"
    """By weights, with aging."""
    STRICT_WITH_AGING = "strict_with_aging"
    """The highest lane that has work, with aging."""
    STRICT = "strict"
    """The highest lane that has work."""
