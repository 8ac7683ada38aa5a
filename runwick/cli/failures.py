"""What is told of a failure, to people and programs alike, and the exit status that a script reads.

0 done, 1 refused, 2 wrong usage or configuration, 3 nobody knows whether it was done, 4 no answer now, 5 not signed in
or not allowed.
"""

from typing import Final, TypeVar

import click
import msgspec

from runwick.cli.answers import ErrorPart
from runwick.contracts.codes import CODES
from runwick.contracts.errors import ConfigurationError, InvalidArgument, OutcomeUnknown, RunwickError

T = TypeVar("T")

REFUSED: Final = 1
WRONG_INPUT: Final = 2
OUTCOME_UNKNOWN: Final = 3
UNAVAILABLE: Final = 4
NOT_ALLOWED: Final = 5

EXIT_STATUSES: Final = {
    0: "Done.",
    REFUSED: "Refused: a conflict, a state that does not allow it, or nothing of that name.",
    WRONG_INPUT: "Wrong usage, input or configuration; nothing was sent.",
    OUTCOME_UNKNOWN: "It may or may not have been done; send it again with the same --command-id.",
    UNAVAILABLE: "No answer now; try again.",
    NOT_ALLOWED: "Not signed in, or not allowed.",
}

_UNAVAILABLE_CODES: Final = frozenset(
    {
        "store_unavailable",
        "connection_failed",
        "busy",
        "rate_limited",
        "local_capacity_exceeded",
        "request_timeout",
        "no_worker",
    }
)
_NOT_ALLOWED_CODES: Final = frozenset(
    {"unauthenticated", "forbidden", "https_required", "antiforgery_failed", "credential_missing"}
)


class Unreachable(RunwickError):
    """A server gave no answer, and nothing was sent (code ``connection_failed``)."""


class NotSignedIn(RunwickError):
    """There is no secret to sign in with (code ``credential_missing``)."""


class Rejected(RunwickError):
    """A desk said no.

    Args:
        error: what it said.
        is_wrong_input: what was asked cannot mean anything.
    """

    def __init__(self, error: ErrorPart, *, is_wrong_input: bool = False) -> None:
        super().__init__(error.code, error.message)
        self.error = error
        self.is_wrong_input = is_wrong_input


def error_of(failure: Exception, command_id: str | None = None) -> ErrorPart | None:
    """What a program is told; None where it is no refusal but a fault of this one."""
    match failure:
        case Rejected():
            error = failure.error
            return error if error.command_id else msgspec.structs.replace(error, command_id=or_unset(command_id))
        case click.ClickException():
            return error_with("usage_error", failure.format_message(), command_id)
        case ConfigurationError():
            message = "; ".join(problem.text for problem in failure.problems)
            return error_with(failure.code, message, command_id)
        case RunwickError():
            return error_with(failure.code, failure.message, command_id)
    return None


def error_with(code: str, message: str, command_id: str | None = None) -> ErrorPart:
    """The error of a code, with what the table of codes says of it."""
    row = CODES.get(code)
    return ErrorPart(
        code=code,
        message=message,
        retryable=row is not None and row.retryable,
        hint="" if row is None else row.hint,
        command_id=or_unset(command_id),
    )


def exit_status_of(failure: Exception) -> int | None:
    """The exit status of a failure; None where it is no refusal but a fault of this program."""
    match failure:
        case click.ClickException():
            return failure.exit_code
        case ConfigurationError():
            return WRONG_INPUT
        case InvalidArgument() | Rejected(is_wrong_input=True):
            return WRONG_INPUT
        case OutcomeUnknown() | RunwickError(code="outcome_unknown"):
            return OUTCOME_UNKNOWN
        case RunwickError():
            return exit_status_of_code(failure.code)
    return None


def exit_status_of_code(code: str) -> int:
    """The exit status of what was refused with a code."""
    if code in _NOT_ALLOWED_CODES:
        return NOT_ALLOWED
    return UNAVAILABLE if code in _UNAVAILABLE_CODES else REFUSED


def or_unset(value: T | None) -> T | msgspec.UnsetType:
    """The value, or that there is none."""
    return msgspec.UNSET if value is None else value
