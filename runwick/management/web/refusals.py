"""What is refused, with which status and in which words.

Whatever the desk raises becomes one of these. `not_found` never says what was asked for: what somebody may not see and
what does not exist are answered with the same bytes. What a store says of its own troubles goes to the log alone, for
it may name hosts, files and roles.
"""

import logging
import uuid
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from runwick.contracts.codes import CODES
from runwick.contracts.controls import ControlAction
from runwick.contracts.errors import (
    AdmissionClosed,
    CommandExpired,
    ControlOutcomeUnknown,
    DispatchOutcomeUnknown,
    InvalidArgument,
    JobNotFound,
    LocalCapacityExceeded,
    OutcomeUnknown,
    RunwickError,
    StoreError,
    StoreUnavailable,
    UniquenessConflict,
)
from runwick.management.bodies import ControlBody
from runwick.management.desk.refusing import refused_for_state
from runwick.management.permissions import Forbidden

_log = logging.getLogger("runwick")
_T = TypeVar("_T")

NOT_FOUND: Final = "there is no such thing, or you may not see it"
CONFLICTS: Final = frozenset(
    {
        "application_required",
        "command_expired",
        "invalid_state",
        "operation_conflict",
        "rate_admission_not_active",
        "stale_generation",
        "stale_revision",
        "uniqueness_composition_conflict",
        "uniqueness_conflict",
    }
)
"""Codes that mean: not as things stand. Their status is 409."""


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """How a target stands that was not as the caller had seen it."""

    generation: int | None = None
    revision: int | None = None
    state: str | None = None


class Error(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why something was refused. Members that are null are left out, but for the first four."""

    code: str
    """Stable, one of `runwick.contracts.codes`."""
    message: str
    retryable: bool
    """Whether the same request can succeed later."""
    hint: str
    """What to do."""
    command_id: str | msgspec.UnsetType = msgspec.UNSET
    """Of a change: sent again with it, the request settles what became of it."""
    actual_generation: int | msgspec.UnsetType = msgspec.UNSET
    actual_revision: int | msgspec.UnsetType = msgspec.UNSET
    actual_state: str | msgspec.UnsetType = msgspec.UNSET
    incident: str | msgspec.UnsetType = msgspec.UNSET
    """Under which the log has more."""


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every answer that is no success."""

    error: Error


class Refusal(Exception):
    """A request that is not answered with what it asked for.

    Args:
        status: of HTTP.
        code: one of the table.
        message: for people; nothing that the caller may not know.
        headers: that go with it.
        command_id: of a change.
        now: how the target stands.
        incident: under which the log has more.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        command_id: str | None = None,
        now: Now | None = None,
        incident: str | None = None,
    ) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.command_id = command_id
        self.now = now or Now()
        self.incident = incident

    @property
    def body(self) -> ErrorBody:
        """What the JSON face says."""
        row = CODES.get(self.code)
        return ErrorBody(
            Error(
                code=self.code,
                message=self.message,
                retryable=row is not None and row.retryable,
                hint="" if row is None else row.hint,
                command_id=_or_unset(self.command_id),
                actual_generation=_or_unset(self.now.generation),
                actual_revision=_or_unset(self.now.revision),
                actual_state=_or_unset(self.now.state),
                incident=_or_unset(self.incident),
            )
        )


def not_found(command_id: str | None = None) -> Refusal:
    """The one answer for what is hidden and for what is missing."""
    return Refusal(404, "not_found", NOT_FOUND, command_id=command_id)


def refused_result(code: str, command_id: str, now: Now | None = None, message: str | None = None) -> Refusal:
    """The refusal that a result with a code means: ``not_found``, or a conflict with how the target stands. Without a
    message of its own it says what the table of codes does."""
    if code == "not_found":
        return not_found(command_id)
    row = CODES.get(code)
    said = message or ("nothing was done" if row is None else row.hint)
    return Refusal(409, code, said, command_id=command_id, now=now)


def refused_control(action: ControlAction, code: str, answer: ControlBody) -> Refusal:
    """The refusal that a control's answer with a code means; of ``invalid_state`` it says what would do."""
    state = None if answer.state is None else answer.state.value
    now = Now(generation=answer.generation, revision=answer.revision, state=state)
    message = refused_for_state(action, answer.state) if code == "invalid_state" else None
    return refused_result(code, answer.command_id, now, message)


def refusal_of(error: Exception, command_id: str | None = None) -> Refusal:
    """What an exception means to the caller. What nobody expected is logged with an incident id and told as nothing but
    that."""
    match error:
        case Refusal():
            if error.command_id is None:
                error.command_id = command_id
            return error
        case JobNotFound() | RunwickError(code="not_found"):
            return not_found(command_id)
        case Forbidden():
            return Refusal(403, "forbidden", error.message, command_id=command_id)
        case ControlOutcomeUnknown():
            return Refusal(504, error.code, _UNKNOWN, command_id=error.command_id)
        case DispatchOutcomeUnknown() | OutcomeUnknown():
            return Refusal(504, error.code, _UNKNOWN, command_id=command_id)
        case RunwickError() if error.code in CONFLICTS or isinstance(error, CommandExpired | UniquenessConflict):
            return Refusal(409, error.code, error.message, command_id=command_id)
        case InvalidArgument():
            return Refusal(400, error.code, error.message, command_id=command_id)
        case AdmissionClosed() | LocalCapacityExceeded():
            return Refusal(503, error.code, error.message, headers={"Retry-After": "1"}, command_id=command_id)
        case StoreError():
            # A store that is away refuses each request in turn: its sentence says it all, and the stack nothing more.
            text = "a request of management met its store's refusal"
            incident = _logged(1403, text, error, has_stack=not isinstance(error, StoreUnavailable))
            message = "the store cannot do this now"
            return Refusal(
                503, error.code, message, headers={"Retry-After": "1"}, command_id=command_id, incident=incident
            )
    incident = _logged(1402, "a request of management failed", error, has_stack=True)
    message = "something went wrong; the log has more under the incident's id"
    return Refusal(500, "internal_error", message, command_id=command_id, incident=incident)


_UNKNOWN: Final = "it may or may not have been done; the same request with the same commandId tells"


def _logged(event_id: int, text: str, error: Exception, *, has_stack: bool) -> str:
    """One line, and the stack where that is asked for; returns the id of the incident."""
    incident, extra = str(uuid.uuid4()), {"event_id": event_id}
    if has_stack:
        _log.error("[%d] %s, incident %s", event_id, text, incident, exc_info=error, extra=extra)
    else:
        _log.error("[%d] %s, incident %s: %s", event_id, text, incident, " ".join(str(error).split()), extra=extra)
    return incident


def _or_unset(value: _T | None) -> _T | msgspec.UnsetType:
    return msgspec.UNSET if value is None else value
