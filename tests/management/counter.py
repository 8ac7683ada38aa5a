"""A desk with a store behind it and callers in front of it."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from runwick import Job, ManagementActor, Runwick, RunwickError
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.controls import JobTarget
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.states import JobState, Priority
from runwick.contracts.usage import Usage
from runwick.management.desk import Desk
from runwick.management.permissions import EVERYTHING, Caller, Grant, Permission
from tests.conformance.ground import BUILD, FAILURE, SEND, Bench

T = TypeVar("T")

OPS = ManagementActor("ops-bot", "Ops bot", "service")
ALL = Caller.of(OPS, EVERYTHING)
NOBODY = Caller.of(ManagementActor("guest", "Guest", "session"), ())
REPORTS, MAILS = Lane("reports", Priority.MEDIUM), Lane("mails", Priority.MEDIUM)
COMMAND = "0199c0de-0000-7000-8000-00000000000a"
NEVER = "0199c0de-0000-7000-8000-0000000000ff"
"""An id that nobody ever gave."""


class Build(Job):
    """What the desk's tests dispatch by hand."""

    number: int = 0
    tags: tuple[str, ...] = ()


class Send(Job):
    to: str


def run(answer: Awaitable[T]) -> T:
    """On an event loop of its own."""

    async def waited() -> T:
        return await answer

    return asyncio.run(waited())


def refused(answer: Awaitable[Any]) -> tuple[str, str, str]:
    """How a question is refused: class, code and message."""
    try:
        run(answer)
    except RunwickError as error:
        return type(error).__name__, error.code, error.message
    raise AssertionError("it was answered")


def only(*permissions: Permission, queues: set[str] | None = None, tenants: set[str | None] | None = None) -> Caller:
    """Somebody with these permissions and no others, everywhere or for some queues and tenants."""
    narrowed: dict[str, Any] = {}
    if queues is not None:
        narrowed["queues"] = frozenset(queues)
    if tenants is not None:
        narrowed["tenants"] = frozenset(tenants)
    return Caller.of(OPS, [Grant(permission, **narrowed) for permission in permissions])


class Counter:
    """The desk of one store, and short ways to fill that."""

    def __init__(self, bench: Bench, rw: Runwick) -> None:
        self.bench = bench
        self.rw = rw

    @property
    def desk(self) -> Desk:
        return self.rw.desk

    def report(self, **changes: Any) -> str:
        """Create a job in the queue ``reports``; answers its id."""
        return id_text(self.bench.dispatch(kind=BUILD, lane=REPORTS, **changes)[0])

    def mail(self, **changes: Any) -> str:
        """Create one in the queue ``mails``."""
        return id_text(self.bench.dispatch(kind=SEND, lane=MAILS, **changes)[0])

    def begun(self, lane: Lane = REPORTS, **changes: Any) -> Attempt:
        """Create a job and let it run; no other may be due there."""
        self.bench.dispatch(kind=BUILD if lane is REPORTS else SEND, lane=lane, **changes)
        (attempt,) = self.bench.claim(lanes=(lane,)).attempts
        return attempt

    def succeeded(self, usage: Usage | None = None, result: bytes | None = b'{"pages":3}', **changes: Any) -> str:
        """Create a job that has succeeded; answers its id."""
        attempt = self.bench.claimed(kind=BUILD, lane=REPORTS, **changes)
        outcome = Outcome(OutcomeKind.SUCCEEDED, result=result, usage=usage)
        self.bench.settle(attempt, outcome, JobState.SUCCEEDED)
        return id_text(attempt.job_id)

    def failed(self, outcome: Outcome = FAILURE, **changes: Any) -> str:
        """Create a job that has failed for good; answers its id."""
        attempt = self.bench.claimed(kind=BUILD, lane=REPORTS, **changes)
        self.bench.settle(attempt, outcome, JobState.FAILED, code=outcome.code)
        return id_text(attempt.job_id)

    def target(self, job_id: str) -> JobTarget:
        """The job as it stands now; one that is not there as if it had just been made."""
        if job_id == NEVER:
            return JobTarget.of(job_id, 1, 1)
        return self.bench.target(JobTarget.of(job_id, 1, 1).job_id)

    @property
    def trail(self) -> list[tuple[str, str | None]]:
        """Which action was done to which job, as the audit trail has it."""
        return [
            (record.action, None if record.job_id is None else id_text(record.job_id)) for record in self.bench.audit()
        ]


@contextmanager
def opened(bench: Bench) -> Iterator[Counter]:
    """The counter in front of a bench's store, for the length of the block."""
    rw = Runwick("shop", store="memory://", ids=bench.ids)
    rw.job(BUILD.name, queue="reports", execution_timeout=datetime.timedelta(seconds=10))(Build)
    rw.job(SEND.name, queue="mails", unique_while_active=lambda job: job.to)(Send)
    with rw.store_replaced(bench.store):
        yield Counter(bench, rw)


def same_but_for(ids: tuple[str, ...]) -> Callable[[Any], bytes]:
    """Makes the JSON of an answer with each of these ids replaced by one word."""

    def plain(answer: Any) -> bytes:
        text = msgspec.json.encode(answer)
        for each in ids:
            text = text.replace(each.encode(), b"ID")
        return text

    return plain
