"""What an exception means, by the step of the attempt's life in which it was raised.

    anywhere    PermanentJobFailure: failed_permanently with its code · MemoryError: failed, handler_failed
                CancelledError in a task that was stopped from outside: interrupted, worker_stopping
    FIND        failed, handler_failed
    DECODE      failed_permanently, payload_undecodable
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

from runwick.contracts.errors import PermanentJobFailure
from runwick.contracts.names import name_problem
from runwick.contracts.outcomes import ErrorDetail, OutcomeKind
from runwick.execution.errors import detail_of, message_of
from runwick.wire.errors import PayloadUndecodable, ResultRefused

E = TypeVar("E", bound=BaseException)


class Step(enum.Enum):
    """Where in its life an attempt stands."""

    FIND = enum.auto()
    """Its handler is looked up."""
    DECODE = enum.auto()
    """Its payload becomes the record."""
    PROVIDE = enum.auto()
    """The providers that the handler needs are opened."""
    HANDLE = enum.auto()
    """The handler runs."""
    ENCODE = enum.auto()
    """What it returned is encoded."""
    CLOSE = enum.auto()
    """The providers are closed."""


_OF_PROVIDERS: Final = (Step.PROVIDE, Step.CLOSE)
_WITH_MESSAGE: Final = (PermanentJobFailure, PayloadUndecodable, ResultRefused)
_NAMELESS: Final = "permanent_failure"
"""For a `PermanentJobFailure` whose code is no name."""


def verdict(step: Step, error: BaseException, *, can_be_stopped: bool = True) -> tuple[OutcomeKind, str]:
    """The kind and the code of an attempt that `error` ended at `step`. Never raises.

    Args:
        step: where it was raised.
        error: what was raised.
        can_be_stopped: whether a worker cancels the task of an attempt to stop it. Where none does, a cancelled task
            was cancelled by its own handler.
    """
    if _is(error, PermanentJobFailure):
        return OutcomeKind.FAILED_PERMANENTLY, _own_code(error)
    if _is(error, MemoryError):
        return OutcomeKind.FAILED, "handler_failed"
    if step is Step.DECODE:
        return OutcomeKind.FAILED_PERMANENTLY, "payload_undecodable"
    if step is Step.ENCODE and _is(error, ResultRefused):
        return OutcomeKind.FAILED_PERMANENTLY, error.code
    if can_be_stopped and _stopped_from_outside(error):
        return OutcomeKind.INTERRUPTED, "worker_stopping"
    return OutcomeKind.FAILED, "provider_failed" if step in _OF_PROVIDERS else "handler_failed"


def described(error: BaseException, closing: Sequence[BaseException]) -> ErrorDetail:
    """The storable detail of `error`; where its class separates code and message, the message alone. Never raises."""
    detail = detail_of(error, closing)
    if any(_is(error, kind) for kind in _WITH_MESSAGE):
        return msgspec.structs.replace(detail, message=message_of(_attribute(error, "message")))
    return detail


def _own_code(error: PermanentJobFailure) -> str:
    code = _attribute(error, "code")
    if not issubclass(type(code), str):
        return _NAMELESS
    code = str.__str__(code)  # the plain string inside a subclass
    return code if name_problem(code) is None else _NAMELESS


def _is(error: BaseException, kind: type[E]) -> TypeGuard[E]:
    """`isinstance` by the class alone: the instance is foreign code, and asked for its ``__class__`` it may raise."""
    return issubclass(type(error), kind)


def _attribute(error: BaseException, name: str) -> Any:
    """An attribute of foreign code: a subclass may have skipped our constructor or made it a property that raises."""
    try:
        return getattr(error, name)
    except BaseException:
        return ""


def _stopped_from_outside(error: BaseException) -> bool:
    # Looked up, not imported: a process without async handlers never loads asyncio.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not _is(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0
