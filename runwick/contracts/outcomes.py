"""What a run ended in, and the one write that ends an attempt."""

import enum
from typing import Annotated, Final, Literal

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.states import JobState
from runwick.contracts.usage import Amount, Usage

ERROR_TEXT_MAX_BYTES: Final = 16 * 1024
RESULT_MAX_BYTES: Final = 1024 * 1024


class OutcomeKind(enum.StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """A retryable failure: the handler raised."""
    FAILED_PERMANENTLY = "failed_permanently"
    """Retrying cannot help: `PermanentJobFailure`, an undecodable payload, a result that cannot be stored."""
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    """Stopped because the worker stopped."""
    CANCELLED = "cancelled"
    CRASHED = "crashed"
    """The executor died under the attempt."""
    ABANDONED = "abandoned"
    """The lease ran out; written by recovery, never by the attempt's owner."""


class ErrorDetail(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Why an attempt did not succeed, made storable: valid UTF-8 without NUL, cut with a mark."""

    type: str
    """The exception's qualified name, a condition such as ``signal``, or what the application answered: ``Retry``,
    ``Failed`` or ``Cancelled``."""
    message: str
    text: str = ""
    """The traceback, at most 16 KiB."""


BLACK_BOX_MAX_BYTES: Final = 16 * 1024
"""Of each of its two texts."""


class Death(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How an executor died under an attempt. Open to everybody who may see the job."""

    cause: Literal["signal", "exit", "out_of_memory", "memory_limit", "unknown"]
    signal: Amount | None = None
    """The signal that killed it."""
    status: Amount | None = None
    """The status that it exited with."""
    phase: str | None = None
    """Where in its life the attempt stood: ``decode``, ``provide``, ``handle``, ``encode`` or ``close``."""


class BlackBox(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a dead executor left behind about its attempt, made storable. Private like an error's traceback."""

    lines: str = ""
    """The last lines that it logged, at most 16 KiB."""
    stack: str = ""
    """The Python stack just before it was killed, at most 16 KiB; empty where it died by itself."""


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a backend reports for one attempt that reached its executor."""

    kind: OutcomeKind
    code: str | None = None
    """A code of `runwick.contracts.codes` or the application's own; None for success."""
    error: ErrorDetail | None = None
    result: Annotated[bytes, msgspec.Meta(max_length=RESULT_MAX_BYTES)] | None = None
    """The handler's return value as JSON of the profile, at most 1 MiB; None when it returned None."""
    usage: Usage | None = None
    """None when recording is off or nothing is known."""
    begun_at_ms: Amount | None = None
    """When the executor marked the attempt begun, by the worker host's clock."""
    retry_after_ms: Amount | None = None
    """A delay the application asked for, instead of the policy's."""
    death: Death | None = None
    """For an attempt whose executor died or was killed."""
    black_box: BlackBox | None = None


SettledState = Literal[JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.RETRYING]
"""Where a job stands when one of its attempts has ended."""


class IfCancelled(msgspec.Struct, frozen=True, gc=False):
    """What a settlement writes instead if, under the row's lock, a cancel is found to stand: the job is cancelled."""

    outcome: OutcomeKind
    """What the attempt's row says."""
    outcome_code: str | None
    code: str = "cancel_requested"
    """Why the job is cancelled."""


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """The one write that ends an attempt: its row in the history and what becomes of the job.

    `state` is terminal, or ``retrying`` with `delay_ms`. The delay is chosen once and repeated with the write.
    """

    attempt: Attempt
    outcome: Outcome
    state: SettledState
    code: str | None = None
    """Why the job stands in `state`, e.g. ``executions_exhausted``; None for success."""
    delay_ms: int | None = None
    """For ``retrying``: milliseconds until it is due again. None keeps the due time it had."""
    if_cancelled: IfCancelled | None = None
    """None: it stands whatever was asked for (a success, an end for good that the handler chose)."""


class Answer(enum.StrEnum):
    """What a store says about one row of a batch. Zero rows changed is a normal answer."""

    DONE = "done"
    CANCELLED = "cancelled"
    """Done, but a cancel stood on the row: the job ended as cancelled."""
    LOCKED = "locked"
    """Somebody's transaction holds the row: try again, its deadline stands."""
    NOT_YOURS = "not_yours"
    """The claim token is no longer the row's: ownership is lost for good."""
