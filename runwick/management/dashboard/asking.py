"""What the pages' addresses and forms may say, as types: unknown parameters and fields are refused by name."""

import datetime
from typing import Annotated, Final

import msgspec

from runwick.contracts.controls import TARGETS_MAX, JobTarget
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.identity import id_bytes
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.revealing import Secret
from runwick.contracts.states import JobState

PAGE_ROWS: Final = 50
Rows = Annotated[int, msgspec.Meta(ge=1, le=100)]


class Notices(msgspec.Struct, frozen=True, kw_only=True):
    """A page that may be come to from a form: what became of it."""

    notice: str | None = None
    """A word that stands for a sentence; one that stands for none is passed over."""


class JobsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs."""

    state: tuple[JobState, ...] = ()
    name: str | None = None
    queue: str | None = None
    tenant: str | None = None
    code: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    until: str | None = None
    cursor: str | None = None
    limit: Rows = PAGE_ROWS

    @property
    def chosen(self) -> JobFilter:
        """The filter.

        Raises:
            InvalidArgument: a time is none.
        """
        return JobFilter(
            states=frozenset(self.state) or None,
            name=self.name,
            queue=self.queue,
            tenant=self.tenant,
            code=self.code,
            created_from_ms=_moment_ms("from", self.from_),
            created_until_ms=_moment_ms("until", self.until),
        )

    @property
    def kept(self) -> dict[str, object]:
        """The parameters that choose, for links to other pages of the same list."""
        states = tuple(state.value for state in self.state)
        shown: dict[str, object] = {
            "state": states,
            "name": self.name,
            "queue": self.queue,
            "tenant": self.tenant,
            "code": self.code,
        }
        return {**shown, "from": self.from_, "until": self.until}


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which records of the audit trail."""

    action: str | None = None
    actor: str | None = None
    job: str | None = None
    target: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    until: str | None = None
    cursor: str | None = None

    @property
    def chosen(self) -> AuditFilter:
        """The filter.

        Raises:
            InvalidArgument: a time or the job's id is none.
        """
        return AuditFilter(
            action=self.action,
            actor=self.actor,
            job_id=None if self.job is None else id_bytes(self.job.strip()),
            target=self.target,
            at_from_ms=_moment_ms("from", self.from_),
            at_until_ms=_moment_ms("until", self.until),
        )

    @property
    def kept(self) -> dict[str, object]:
        """As `JobsQuery.kept`."""
        shown: dict[str, object] = {"action": self.action, "actor": self.actor, "job": self.job, "target": self.target}
        return {**shown, "from": self.from_, "until": self.until}


class ScopesQuery(Notices, frozen=True, kw_only=True):
    """Which limits; the two lists of the page go on by themselves."""

    kind: LimitKind | None = None
    cursor: str | None = None
    """Of the scopes."""
    after: str | None = None
    """Of the rate windows."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What changes something: why, and an id with which a second click is a replay."""

    command_id: str = msgspec.field(name="command")
    reason: str | None = None

    @property
    def seen_at(self) -> tuple[str, ...]:
        """Where what it is about can be looked at again, as `href` takes it."""
        return ("/jobs",)


class ControlForm(Form, frozen=True, kw_only=True):
    """Some jobs as they were shown."""

    target: tuple[str, ...] = ()
    """``id:generation:revision`` each."""
    one: bool = False
    """It comes from the page of a job, and leads back there."""

    @property
    def seen_at(self) -> tuple[str, ...]:
        return ("/jobs/", self.target[0].partition(":")[0]) if self.one and self.target else ("/jobs",)

    @property
    def targets(self) -> list[JobTarget]:
        """The jobs.

        Raises:
            InvalidArgument: there are none or too many, or one cannot be read.
        """
        if not 1 <= len(self.target) <= TARGETS_MAX:
            message = f"{len(self.target)} jobs are selected; select 1 to {TARGETS_MAX}"
            raise InvalidArgument("invalid_argument", message)
        return [target_of(text) for text in self.target]


class LookForm(Form, frozen=True, kw_only=True):
    """One job whose stack is asked for."""

    target: str

    @property
    def seen_at(self) -> tuple[str, ...]:
        return ("/jobs/", self.target.partition(":")[0])


class RevealForm(Form, frozen=True, kw_only=True):
    """One secret of one job."""

    what: Secret
    attempt: str | None = None


class QueueForm(Form, frozen=True, kw_only=True):
    """One queue as it was shown."""

    queue: str
    revision: int
    back: str = "list"
    """Where it comes from: ``list`` or ``queue``."""

    @property
    def seen_at(self) -> tuple[str, ...]:
        return ("/queues/", self.queue) if self.back == "queue" else ("/queues",)


class CapacityForm(Form, frozen=True, kw_only=True):
    """One scope as it was shown, and what its capacity is to be."""

    kind: LimitKind
    key: str
    revision: int
    capacity: int

    @property
    def seen_at(self) -> tuple[str, ...]:
        return ("/scopes",)


class ThemeForm(msgspec.Struct, frozen=True, kw_only=True):
    """How pages look."""

    back: str = "/"
    """Where it comes from, below the mount."""
    theme: str | None = None
    """None: as the system has it."""


def target_of(text: str) -> JobTarget:
    """One job as it was shown.

    Raises:
        InvalidArgument: it cannot be read.
    """
    job_id, *numbers = text.split(":")
    if len(numbers) != 2 or not all(number.isascii() and number.isdecimal() and len(number) < 16 for number in numbers):
        raise InvalidArgument("invalid_argument", "a selected job cannot be read; look at the list again")
    return JobTarget.of(job_id, int(numbers[0]), int(numbers[1]))


def _moment_ms(name: str, text: str | None) -> int | None:
    """A time as the browser's field writes it, in UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        message = f"{name} is no time; write it as 2026-11-29T12:00"
        raise InvalidArgument("invalid_argument", message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1_000)
