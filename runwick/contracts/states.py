"""The states of a job and the one table of legal moves between them.

The state is the job's, not the attempt's: a job between two executions is ``retrying``. A generation ends in a
terminal state and never leaves it; only a manual retry or rerun opens the next generation, as ``pending``.
The diagram in ``ARCHITECTURE.md`` is generated from `LEGAL_MOVES`.
"""

import enum
from typing import Final, Literal


class JobState(enum.StrEnum):
    """Where one generation of a job stands."""

    PENDING = "pending"
    """Durable, never executed in this generation; due now or later."""
    RESERVED = "reserved"
    """Claimed under a lease, not yet authorised to call the handler (its payload is read at hand-over)."""
    RUNNING = "running"
    """Claimed and authorised to call the handler."""
    RETRYING = "retrying"
    """Waiting for its next execution."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether this state ends a generation."""
        return self in TERMINAL_STATES


TERMINAL_STATES: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
LEASED_STATES: Final = frozenset({JobState.RESERVED, JobState.RUNNING})

LEGAL_MOVES: Final[dict[JobState, frozenset[JobState]]] = {
    # claim: `running` when the claim begins it, `reserved` when its large payload is read at hand-over
    JobState.PENDING: frozenset({JobState.RESERVED, JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    # begin, release (back to where it stood), the unstarted guard, cancel
    JobState.RESERVED: frozenset(
        {JobState.RUNNING, JobState.PENDING, JobState.RETRYING, JobState.FAILED, JobState.CANCELLED}
    ),
    # settle, recover, and a release of what provably never reached its handler
    JobState.RUNNING: frozenset(
        {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.RETRYING, JobState.PENDING}
    ),
    JobState.RETRYING: frozenset({JobState.RESERVED, JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    # retry and rerun open the next generation
    JobState.SUCCEEDED: frozenset({JobState.PENDING}),
    JobState.FAILED: frozenset({JobState.PENDING}),
    JobState.CANCELLED: frozenset({JobState.PENDING}),
}


PriorityName = Literal["high", "medium", "low"]
"""A priority as it is written in code."""


class Priority(enum.StrEnum):
    """A lane's rank within its queue."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
