"""A job as its application sees it: the store's record with ids as text, times as datetimes, the result decoded."""

import datetime
from typing import Any, Final, TypeVar, overload

import msgspec

from runwick.contracts.controls import JobTarget
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import AttemptRecord, JobRecord
from runwick.contracts.usage import Usage

T = TypeVar("T")

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a job that has ended."""

    attempt_id: str
    """UUID text."""
    generation: int
    number: int
    """From 1 within its generation."""
    outcome: str
    """A value of `OutcomeKind`, such as ``succeeded``, ``failed`` or ``crashed``."""
    code: str | None
    begun_at: datetime.datetime | None
    """When its handler's run began, by the worker host's clock; None when that is not known."""
    ended_at: datetime.datetime
    usage: Usage | None
    """What it cost; None when that was not recorded."""
    worker: str | None
    """The id of the worker that ran it."""
    delay: datetime.timedelta | None
    """How long the job was made to wait after it."""
    death: Death | None
    """How its executor died, if it did."""
    error: ErrorDetail | None
    """Why it did not succeed, while that is kept."""
    black_box: BlackBox | None
    """The last log lines and the stack of an executor that died or was killed, while they are kept."""

    @classmethod
    def of(cls, record: AttemptRecord) -> "AttemptView":
        """The view of a stored attempt."""
        return cls(
            attempt_id=id_text(record.attempt_id),
            generation=record.generation,
            number=record.number,
            outcome=record.outcome,
            code=record.code,
            begun_at=_datetime(record.begun_at_ms),
            ended_at=_EPOCH + datetime.timedelta(milliseconds=record.ended_at_ms),
            usage=record.usage,
            worker=None if record.worker is None else id_text(record.worker),
            delay=None if record.delay_ms is None else datetime.timedelta(milliseconds=record.delay_ms),
            death=record.death,
            error=record.error,
            black_box=record.black_box,
        )


class JobView:
    """A job as it stood when it was read. Times are aware, UTC, by the store's clock unless they say otherwise."""

    def __init__(self, record: JobRecord) -> None:
        self.job_id: str = id_text(record.job_id)
        """UUID text."""
        self.name: str = record.kind.name
        self.version: int = record.kind.version
        """Of the stored payload."""
        self.queue: str = record.lane.queue
        self.priority: Priority = record.lane.priority
        self.state: JobState = record.state
        self.code: str | None = record.code
        """Why it stands in its state: for a failed job the reason."""
        self.generation: int = record.generation
        self.revision: int = record.revision
        """Rises by one with every change; a control names the one it saw."""
        self.executions: int = record.executions
        """Of this generation, so far."""
        self.max_executions: int = record.max_executions
        self.created_at: datetime.datetime = _EPOCH + datetime.timedelta(milliseconds=record.created_at_ms)
        self.due_at: datetime.datetime | None = _datetime(record.due_at_ms)
        """When a waiting job is due."""
        self.expires_at: datetime.datetime | None = _datetime(record.expires_at_ms)
        """A job that has not begun by then fails as ``expired``; a planned retry moves it on."""
        self.cancel_requested_at: datetime.datetime | None = _datetime(record.cancel_requested_at_ms)
        """When somebody cancelled it, whatever became of that."""
        self.worker: str | None = None if record.worker is None else id_text(record.worker)
        """The id of the worker that holds it now."""
        self.begun_at: datetime.datetime | None = _datetime(record.begun_at_ms)
        """When the handler of a running job began, by the worker host's clock and as far as it was told."""
        self.ended_at: datetime.datetime | None = _datetime(record.ended_at_ms)
        self.tenant: str | None = record.tenant
        self.attempts: tuple[AttemptView, ...] = tuple(AttemptView.of(each) for each in record.attempts)
        """Those that have ended, of all generations, oldest first."""
        self._result = record.result

    @property
    def handed_over(self) -> bool:
        """Whether it waits at its worker: it may begin at any moment, but has not as far as is known."""
        return self.state is JobState.RUNNING and self.begun_at is None

    @property
    def target(self) -> JobTarget:
        """The job as it was read, for ``rw.controls``."""
        return JobTarget.of(self.job_id, self.generation, self.revision)

    @property
    def outcome(self) -> str | None:
        """What the last attempt ended in; None before one has."""
        return self.attempts[-1].outcome if self.attempts else None

    @property
    def usage(self) -> Usage | None:
        """What the last attempt cost; None when that is not known."""
        return self.attempts[-1].usage if self.attempts else None

    @overload
    def result(self) -> Any: ...
    @overload
    def result(self, type: type[T]) -> T: ...
    def result(self, type: Any = Any) -> Any:  # noqa: A002 - the decoder's own word
        """What the handler returned.

        Args:
            type: any type msgspec can decode, to get the result as that; otherwise dict, list, text and numbers.

        Raises:
            InvalidArgument: the job has not succeeded (code ``invalid_state``), or its result is not of that type
                (code ``invalid_result``).
        """
        if self.state is not JobState.SUCCEEDED:
            why = f" ({self.code})" if self.code else ""
            message = f"job {self.job_id} is {self.state.value}{why}; only a succeeded job has a result"
            raise InvalidArgument("invalid_state", message)
        if self._result is None:
            return None
        try:
            return msgspec.json.decode(self._result, type=type)
        except msgspec.ValidationError as error:
            raise InvalidArgument(
                "invalid_result", f"the result of job {self.job_id} is of another type: {error}"
            ) from None

    def __repr__(self) -> str:
        why = f", code={self.code}" if self.code else ""
        return f"JobView(job_id={self.job_id}, name={self.name}, state={self.state.value}{why})"


def _datetime(since_epoch_ms: int | None) -> datetime.datetime | None:
    return None if since_epoch_ms is None else _EPOCH + datetime.timedelta(milliseconds=since_epoch_ms)
