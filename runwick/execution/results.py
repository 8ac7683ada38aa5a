"""What a middleware or a handler answers: a plain value, or a result that says more than that."""

import datetime
from typing import Final, TypeGuard

from runwick.contracts.names import name_problem
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.results import Cancelled, Failed, Result, Retry, Succeeded

NAMELESS: Final = "permanent_failure"
"""For an end for good whose code is no name."""

_RESULTS: Final = frozenset({Succeeded, Retry, Failed, Cancelled})
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
_DELAY_MAX: Final = datetime.timedelta(days=36_500)
"""Far beyond every policy's longest delay, by which it is cut later."""


class ContractFault(Exception):
    """A middleware that breaks its contract: the job fails for good."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotSucceeded(Exception):
    """A result other than success, on its way to where failures are judged. Providers see it as they see an error, so
    that they roll back."""

    def __init__(self, result: Retry | Failed | Cancelled) -> None:
        super().__init__(result)
        self.result = result

    @property
    def message(self) -> str:
        """What the result says, for people."""
        return self.result.message if isinstance(self.result, Failed) else self.result.reason

    def __str__(self) -> str:
        return f"{type(self.result).__name__}: {self.message}"


def is_result(answer: object) -> TypeGuard[Result]:
    """Whether it is more than a value. By the class alone: an answer is foreign code."""
    return type(answer) in _RESULTS


def value_of(answer: object) -> object:
    """The value of a success.

    Raises:
        NotSucceeded: the answer is another result.
        ContractFault: it asks for a delay that there is not.
    """
    if not is_result(answer):
        return answer
    if isinstance(answer, Succeeded):
        return answer.value
    if isinstance(answer, Retry) and answer.delay is not None:
        _check_delay(answer.delay)
    raise NotSucceeded(answer)


def ending_of_result(result: Retry | Failed | Cancelled) -> tuple[OutcomeKind, str]:
    """The kind and the code of an attempt that ended in it."""
    if isinstance(result, Retry):
        return OutcomeKind.FAILED, code_or(result.reason, "retry_requested")
    if isinstance(result, Failed):
        return OutcomeKind.FAILED_PERMANENTLY, code_or(result.code, NAMELESS)
    return OutcomeKind.CANCELLED, code_or(result.reason, "cancel_requested")


def delay_ms_of(result: Result) -> int | None:
    """How long to wait before the next run, where the result says it."""
    if not isinstance(result, Retry) or result.delay is None:
        return None
    return min(result.delay, _DELAY_MAX) // _MILLISECOND


def code_or(code: object, otherwise: str) -> str:
    """The code as stored: it, where it is a name."""
    if not issubclass(type(code), str):
        return otherwise
    plain = str.__str__(code)  # the plain string inside a subclass
    return plain if name_problem(plain) is None else otherwise


def _check_delay(delay: object) -> None:
    if not isinstance(delay, datetime.timedelta):
        raise ContractFault(f"Retry takes its delay as a datetime.timedelta, this is {type(delay).__name__}")
    if delay < datetime.timedelta(0):
        raise ContractFault(f"Retry cannot wait for {delay.total_seconds():g} seconds; give a delay from zero on")
