"""What an exception means, by the step of the attempt's life in which it was raised.

    anywhere    a result other than success: what it says · PermanentJobFailure: failed_permanently with its code
                MemoryError: failed, handler_failed · a broken contract: failed_permanently, middleware_contract_fault
                JobCancelled, CancelledError, when the run is asked to stop: by the cause
    FIND        failed, handler_failed
    DECODE      failed_permanently, payload_undecodable
    UPGRADE     failed_permanently, payload_upgrade_failed
    PROVIDE     failed, provider_failed
    HANDLE      failed, handler_failed
    ENCODE      failed_permanently with the refusal's code
    CLOSE       failed, provider_failed

A provider that fails when it is closed after a successful handler fails the attempt, since what closes is usually what
commits. It never turns a failure into a success or into another failure.
"""

import enum
import sys
from collections.abc import Sequence
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import JobCancelled, PermanentJobFailure
from runwick.contracts.outcomes import ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.usage import Usage
from runwick.execution.errors import brief_detail_of, detail_of, detail_of_answer, message_of, type_of
from runwick.execution.results import NAMELESS, ContractFault, NotSucceeded, code_or, delay_ms_of, ending_of_result
from runwick.execution.run import Run
from runwick.wire.errors import PayloadUndecodable, ResultRefused

E = TypeVar("E", bound=BaseException)


class Step(enum.IntEnum):
    """Where in its life an attempt stands. Its number is what one process tells another."""

    FIND = enum.auto()
    """Its handler is looked up."""
    DECODE = enum.auto()
    """Its payload becomes a record."""
    UPGRADE = enum.auto()
    """A record of an older version becomes a current one."""
    PROVIDE = enum.auto()
    """The providers that a middleware or the handler needs are opened."""
    HANDLE = enum.auto()
    """Middleware or the handler runs."""
    ENCODE = enum.auto()
    """What came of it is encoded."""
    CLOSE = enum.auto()
    """The providers are closed."""


FIND, DECODE, UPGRADE, PROVIDE, HANDLE, ENCODE, CLOSE = Step
"""The same by themselves. Every run asks for most of them, and before Python 3.12 looking one up in its class is a
call."""

_OF_PROVIDERS: Final = (PROVIDE, CLOSE)
_WITH_MESSAGE: Final = (PermanentJobFailure, NotSucceeded, ContractFault, PayloadUndecodable, ResultRefused)
_NOBODY_ASKED: Final = CancellationCause(0)

_ENDINGS: Final = (
    (CancellationCause.TIMEOUT, OutcomeKind.TIMED_OUT, "execution_timed_out"),
    (CancellationCause.USER_REQUESTED, OutcomeKind.CANCELLED, "cancel_requested"),
    (CancellationCause.SHUTDOWN, OutcomeKind.INTERRUPTED, "worker_stopping"),
    (CancellationCause.LEASE_LOST, OutcomeKind.INTERRUPTED, "lease_lost"),
)
"""By precedence: of several causes the first decides."""


def ending_of(causes: CancellationCause) -> tuple[OutcomeKind, str]:
    """The kind and the code of an attempt that was stopped for these causes, of which there is at least one."""
    return next((kind, code) for cause, kind, code in _ENDINGS if cause in causes)


def failed(
    run: Run,
    step: Step,
    error: BaseException,
    closing: Sequence[BaseException],
    causes: CancellationCause,
    usage: Usage | None,
    begun_at_ms: int,
) -> Outcome:
    """The end of a run that did not succeed. Never raises.

    Args:
        run: the attempt's facts.
        step: where it was raised.
        error: what was raised.
        closing: what providers raised when they were closed after it.
        causes: why the run is asked to stop, if it is.
        usage: what it cost.
        begun_at_ms: when it began.
    """
    kind, code = verdict(step, error, causes)
    detail = described(error, closing, message_only=run.message_only)
    delay_ms = delay_ms_of(error.result) if type(error) is NotSucceeded else None
    return Outcome(kind, code, detail, usage=usage, begun_at_ms=begun_at_ms, retry_after_ms=delay_ms)


def timed_out(outcome: Outcome) -> Outcome:
    """The end of a run that took too long, whatever it returned or raised in the end."""
    error = outcome.error or ErrorDetail("time limit", "its handler returned after the time limit")
    return msgspec.structs.replace(
        outcome,
        kind=OutcomeKind.TIMED_OUT,
        code="execution_timed_out",
        error=error,
        result=None,
        retry_after_ms=None,
    )


def verdict(step: Step, error: BaseException, causes: CancellationCause = _NOBODY_ASKED) -> tuple[OutcomeKind, str]:
    """The kind and the code of an attempt that `error` ended at `step`. Never raises.

    Args:
        step: where it was raised.
        error: what was raised.
        causes: why the run is asked to stop, if it is. Where nobody asks, a cancelled run was cancelled by its own
            handler.
    """
    if _is(error, NotSucceeded):
        return ending_of_result(error.result)
    if _is(error, PermanentJobFailure):
        return OutcomeKind.FAILED_PERMANENTLY, code_or(_attribute(error, "code"), NAMELESS)
    if _is(error, MemoryError):
        return OutcomeKind.FAILED, "handler_failed"
    if _is(error, ContractFault):
        return OutcomeKind.FAILED_PERMANENTLY, "middleware_contract_fault"
    if causes and (_is(error, JobCancelled) or is_cancelled(error)):
        return ending_of(causes)
    if step is DECODE:
        return OutcomeKind.FAILED_PERMANENTLY, "payload_undecodable"
    if step is UPGRADE:
        return OutcomeKind.FAILED_PERMANENTLY, "payload_upgrade_failed"
    if step is ENCODE and _is(error, ResultRefused):
        return OutcomeKind.FAILED_PERMANENTLY, error.code
    return OutcomeKind.FAILED, "provider_failed" if step in _OF_PROVIDERS else "handler_failed"


def described(error: BaseException, closing: Sequence[BaseException], *, message_only: bool = False) -> ErrorDetail:
    """The storable detail of `error`; where its class separates code and message, the message alone. Never raises.

    A result that the application answered was not raised: it has its own name, and no traceback.

    Args:
        error: what ended the attempt.
        closing: what providers raised when they were closed after it.
        message_only: type and message, and no more.
    """
    says: object = error
    if any(_is(error, kind) for kind in _WITH_MESSAGE):
        says = _attribute(error, "message")
    if _is(error, NotSucceeded):
        name = type(error.result).__name__
        return brief_detail_of(name, says) if message_only else detail_of_answer(name, says, closing)
    return brief_detail_of(type_of(error), says) if message_only else detail_of(error, closing, message_of(says))


def is_cancelled(error: BaseException) -> bool:
    """Whether it is asyncio's word for "cancelled"."""
    # Looked up, not imported: a process without async handlers never loads asyncio.
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and _is(error, asyncio.CancelledError)


def _is(error: BaseException, kind: type[E]) -> TypeGuard[E]:
    """`isinstance` by the class alone: the instance is foreign code, and asked for its ``__class__`` it may raise."""
    return issubclass(type(error), kind)


def _attribute(error: BaseException, name: str) -> Any:
    """An attribute of foreign code: a subclass may have skipped our constructor or made it a property that raises."""
    try:
        return getattr(error, name)
    except BaseException:
        return ""
