"""What happened, in the order in which it was committed."""

import enum
from collections.abc import Sequence

import msgspec

from runwick.contracts.attempts import Kind, Lane


class EventKind(enum.StrEnum):
    DISPATCHED = "dispatched"
    ATTEMPT_ENDED = "attempt_ended"
    JOB_ENDED = "job_ended"
    """A generation ended."""
    CONTROLLED = "controlled"
    """An operator did something to the job."""


class JobEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to one job."""

    cursor: str
    """Reading after it goes on behind this event. It means something to the store alone that gave it."""
    what: EventKind
    job_id: bytes
    kind: Kind
    lane: Lane
    generation: int
    at_ms: int
    number: int | None = None
    """Of an attempt, within its generation."""
    state: str | None = None
    """How it ended, an attempt's outcome or a job's state; or which control it was."""
    code: str | None = None
    attempt_id: bytes | None = None
    command_id: bytes | None = None


class EventPage(msgspec.Struct, frozen=True):
    """Some events. It may be short, even empty, although there is more."""

    events: Sequence[JobEvent]
    cursor: str
    """Where to go on."""
    more: bool


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an operator did."""

    cursor: str
    at_ms: int
    actor: str
    """The subject."""
    actor_display: str | None
    actor_scheme: str | None
    action: str
    job_id: bytes | None
    generation: int | None
    """The one that the action was about or opened."""
    before: str | None
    """What was there, for a job its state."""
    after: str | None
    reason: str | None
    command_id: bytes | None
    target: str | None = None
    """What else than a job it was about: ``queue emails``, ``resource invoice:7``."""


class AuditPage(msgspec.Struct, frozen=True):
    """Some of it, in commit order."""

    records: Sequence[AuditRecord]
    cursor: str
    more: bool
