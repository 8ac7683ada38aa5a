"""What is shown only to whom an operator's permission says so, and never without a row in the audit trail."""

import enum

import msgspec

from runwick.contracts.controls import ManagementActor
from runwick.contracts.outcomes import BlackBox, ErrorDetail


class Secret(enum.StrEnum):
    """What there is to reveal; the value is the action's name in the audit trail behind ``reveal_``."""

    PAYLOAD = "payload"
    RESULT = "result"
    ERROR = "error"
    """Of one attempt: type, message and traceback."""
    BLACK_BOX = "black_box"
    """Of one attempt: last log lines and stack of the executor that died with it."""
    STACK = "stack"
    """Of a running attempt, as `look` asked for it."""


class RevealCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Show one secret of one job. The audit row is committed with the read, before any of it leaves the store."""

    what: Secret
    command_id: bytes
    application: str
    actor: ManagementActor
    reason: str | None
    job_id: bytes
    attempt_id: bytes | None = None
    """Which attempt's; None for payload and result."""


class Revealed(msgspec.Struct, frozen=True, kw_only=True):
    """What was shown. One of these; all None where there is no such thing (not there any more, or never)."""

    json: bytes | None = None
    """Of payload and result, byte for byte as stored."""
    error: ErrorDetail | None = None
    black_box: BlackBox | None = None
    text: str | None = None
    """Of a stack."""
    replayed: bool = False
    """It had been shown for this command before, so this time no row was written."""


class AuditNote(msgspec.Struct, frozen=True, kw_only=True):
    """Who dispatches a job by hand, and why: written into the audit trail with the job, under its operation id."""

    actor: ManagementActor
    reason: str | None
