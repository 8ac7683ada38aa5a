"""What happened and who works, as an application sees it: records with ids as text and times as datetimes."""

import datetime
from collections.abc import Iterator
from typing import Final

import msgspec

from runwick.contracts.activity import ExecutorActivity, WorkerRecord
from runwick.contracts.history import AuditRecord, EventKind, JobEvent
from runwick.contracts.identity import id_text
from runwick.contracts.states import Priority

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a job, in the order in which it was committed."""

    cursor: str
    """Reading after it goes on behind this event."""
    what: EventKind
    at: datetime.datetime
    job_id: str
    name: str
    queue: str
    priority: Priority
    generation: int
    number: int | None
    """Of an attempt, within its generation."""
    state: str | None
    """How it ended, an attempt's outcome or a job's state; or which control it was."""
    code: str | None
    attempt_id: str | None
    command_id: str | None

    @classmethod
    def of(cls, event: JobEvent) -> "EventView":
        """The view of a stored event."""
        return cls(
            cursor=event.cursor,
            what=event.what,
            at=_at(event.at_ms),
            job_id=id_text(event.job_id),
            name=event.kind.name,
            queue=event.lane.queue,
            priority=event.lane.priority,
            generation=event.generation,
            number=event.number,
            state=event.state,
            code=event.code,
            attempt_id=_id(event.attempt_id),
            command_id=_id(event.command_id),
        )


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an operator did."""

    cursor: str
    at: datetime.datetime
    actor: str
    actor_display: str | None
    actor_scheme: str | None
    action: str
    target: str | None
    """What it was done to, if that is no job: ``queue emails``, ``resource invoice:7``."""
    job_id: str | None
    generation: int | None
    before: str | None
    after: str | None
    reason: str | None
    command_id: str | None

    @classmethod
    def of(cls, record: AuditRecord) -> "AuditView":
        """The view of a stored record."""
        return cls(
            cursor=record.cursor,
            at=_at(record.at_ms),
            actor=record.actor,
            actor_display=record.actor_display,
            actor_scheme=record.actor_scheme,
            action=record.action,
            target=record.target,
            job_id=_id(record.job_id),
            generation=record.generation,
            before=record.before,
            after=record.after,
            reason=record.reason,
            command_id=_id(record.command_id),
        )


class ExecutorView(msgspec.Struct, frozen=True, kw_only=True):
    """What one executor did when its worker last told."""

    number: int
    pool: str
    phase: str
    """``idle``, ``starting`` or ``leaving``; for one that runs, where in its life the attempt stood."""
    process: int | None
    job_id: str | None
    attempt_id: str | None
    name: str | None
    begun_at: datetime.datetime | None
    cpu: datetime.timedelta | None
    """CPU time of the running attempt so far."""
    rss_bytes: int | None
    attempts: int
    restarts: int
    restarted_for: str | None

    @classmethod
    def of(cls, activity: ExecutorActivity) -> "ExecutorView":
        """The view of what was told."""
        return cls(
            number=activity.number,
            pool=activity.pool,
            phase=activity.phase,
            process=activity.process,
            job_id=_id(activity.job_id),
            attempt_id=_id(activity.attempt_id),
            name=activity.name,
            begun_at=None if activity.begun_at_ms is None else _at(activity.begun_at_ms),
            cpu=None if activity.cpu_us is None else datetime.timedelta(microseconds=activity.cpu_us),
            rss_bytes=activity.rss_bytes,
            attempts=activity.attempts,
            restarts=activity.restarts,
            restarted_for=activity.restarted_for,
        )


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, as it last told."""

    worker: str
    host: str
    process: int
    queues: tuple[str, ...]
    seen_at: datetime.datetime
    departed_at: datetime.datetime | None
    """When it said good-bye, or was found dead."""
    executors: tuple[ExecutorView, ...]
    """None of a worker that has departed: they are gone with it."""

    @classmethod
    def of(cls, record: WorkerRecord) -> "WorkerView":
        """The view of a stored worker."""
        presence = record.presence
        return cls(
            worker=id_text(presence.worker),
            host=presence.host,
            process=presence.process,
            queues=tuple(presence.queues),
            seen_at=_at(record.seen_at_ms),
            departed_at=None if record.departed_at_ms is None else _at(record.departed_at_ms),
            executors=tuple(map(ExecutorView.of, record.executors)) if record.departed_at_ms is None else (),
        )


class Events(msgspec.Struct, frozen=True):
    """Some events, also as an iterable of them; there may be none although there are `more`."""

    events: tuple[EventView, ...]
    cursor: str
    """Where to go on."""
    more: bool
    """Whether there are more behind the cursor; an empty page alone does not say that there are none."""

    def __iter__(self) -> Iterator[EventView]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)


class Audit(msgspec.Struct, frozen=True):
    """Some of what operators did, also as an iterable of it; there may be nothing although there is `more`."""

    records: tuple[AuditView, ...]
    cursor: str
    """Where to go on."""
    more: bool
    """Whether there is more behind the cursor; an empty page alone does not say that there is none."""

    def __iter__(self) -> Iterator[AuditView]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


def _at(since_epoch_ms: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=since_epoch_ms)


def _id(raw: bytes | None) -> str | None:
    return None if raw is None else id_text(raw)
