"""What the API is asked: queries and bodies. What is unknown is refused by name."""

import datetime
import uuid
from typing import Annotated

import msgspec
from msgspec import Meta

from runwick.contracts.controls import TARGETS_MAX
from runwick.contracts.limits import CAPACITY_MAX, LimitKind
from runwick.contracts.revealing import Secret
from runwick.contracts.states import JobState, PriorityName
from runwick.management.commands import REASON_MAX_CHARACTERS
from runwick.management.desk.dispatching import DELAY_MAX_MS

Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Revision = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""0 for a queue that nobody ever paused."""
Limit = Annotated[int, Meta(ge=1, le=100)]
_LINE = r"[^\x00-\x1f\x7f-\x9f]"
_TEXT = r"[^\x00-\x08\x0b-\x1f\x7f-\x9f]"
"""Lines and tabs are welcome here."""
Word = Annotated[str, Meta(min_length=1, max_length=256, pattern=f"^{_LINE}*$")]
Token = Annotated[str, Meta(min_length=1, max_length=4096, pattern="^[A-Za-z0-9_-]*$")]
Moment = Annotated[datetime.datetime, Meta(tz=True)]
"""ISO 8601 with a time zone."""
Reason = Annotated[
    str,
    Meta(min_length=1, max_length=REASON_MAX_CHARACTERS, pattern=rf"^{_TEXT}*[^\s\x00-\x1f\x7f-\x9f]{_TEXT}*$"),
]
"""Not all of it blank."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The form of all of them."""


class JobQuery(Asked, frozen=True, kw_only=True):
    """Which jobs; all of it must fit."""

    state: tuple[JobState, ...] = ()
    """May be given several times."""
    queue: Word | None = None
    name: Word | None = None
    """The type's stored name."""
    tenant: Word | None = None
    code: Word | None = None
    from_: Moment | None = msgspec.field(default=None, name="from")
    """Created then or later."""
    until: Moment | None = None
    """Created before."""
    cursor: Token | None = None
    limit: Limit = 50


class EventQuery(Asked, frozen=True, kw_only=True):
    after: Token | None = None
    """A cursor; without one from the beginning."""
    limit: Limit = 100


class LimitQuery(Asked, frozen=True, kw_only=True):
    kind: LimitKind | None = None
    cursor: Token | None = None
    limit: Limit = 100


class AuditQuery(Asked, frozen=True, kw_only=True):
    """Which records; all of it must fit."""

    action: Word | None = None
    actor: Word | None = None
    """The subject."""
    job: uuid.UUID | None = None
    target: Annotated[str, Meta(min_length=1, max_length=1024, pattern=f"^{_LINE}*$")] | None = None
    from_: Moment | None = msgspec.field(default=None, name="from")
    until: Moment | None = None
    cursor: Token | None = None
    limit: Limit = 50


class Change(Asked, frozen=True, kw_only=True):
    """What every change and reveal carries."""

    command_id: uuid.UUID
    """Of the caller's own making; sent again with it, the first answer is given again."""
    reason: Reason | None = None
    """For the audit trail."""


class ControlChange(Change, frozen=True, kw_only=True):
    expected_generation: Number
    """As last read, like the revision; if the job has changed since, nothing is done."""
    expected_revision: Number


class Target(Asked, frozen=True, kw_only=True):
    job_id: uuid.UUID
    expected_generation: Number
    expected_revision: Number


class ControlsChange(Change, frozen=True, kw_only=True):
    targets: Annotated[tuple[Target, ...], Meta(min_length=1, max_length=TARGETS_MAX)]


class RevealChange(Change, frozen=True, kw_only=True):
    what: Secret
    attempt_id: uuid.UUID | None = None
    """Of an error, black box or stack."""


class QueueChange(Change, frozen=True, kw_only=True):
    expected_revision: Revision


class CapacityChange(Change, frozen=True, kw_only=True):
    capacity: Annotated[int, Meta(ge=1, le=CAPACITY_MAX)]
    expected_revision: Revision


class DispatchChange(Change, frozen=True, kw_only=True):
    name: Word
    """The type's stored name."""
    payload: msgspec.Raw
    """JSON of its record."""
    queue: Word | None = None
    priority: PriorityName | None = None
    delay_ms: Annotated[int, Meta(ge=0, le=DELAY_MAX_MS)] | None = None
    tenant: Word | None = None
