"""What the memory store holds, and the order in which its jobs wait.

One row per job carries everything: what was asked, where it stands, its history. The acts beside this module change
rows; each checks all it has to before it changes the first one, so that an act that raises has changed nothing.
"""

import bisect
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runwick.contracts.attempts import Attempt, Lane, WorkerPresence
from runwick.contracts.dispatching import Command
from runwick.contracts.states import LEASED_STATES, JobState
from runwick.contracts.stores import Act, AttemptRecord

T = TypeVar("T")

Entry = tuple[int, bytes, int]
"""(due_at_ms, job_id, job): entries sort in claim order."""


@dataclass(slots=True)
class Lease:
    """Who holds a job."""

    attempt_id: bytes
    claim_token: bytes
    worker: bytes
    until_ms: int


@dataclass(slots=True)
class JobRow:
    """One job."""

    job: int
    command: Command
    created_at_ms: int
    due_at_ms: int
    expires_at_ms: int | None
    lives_ms: int | None
    """How long it had from its creation to its expiry; a planned retry gives it as long again."""
    state: JobState = JobState.PENDING
    generation: int = 1
    revision: int = 1
    attempts: int = 0
    """The number of the generation's last attempt."""
    executions: int = 0
    unstarted: int = 0
    crashes: int = 0
    code: str | None = None
    cancel_requested: bool = False
    lease: Lease | None = None
    ended_at_ms: int | None = None
    result: bytes | None = None
    history: list[AttemptRecord] = field(default_factory=list)

    @property
    def may_run_ahead(self) -> bool:
        """Whether one execution more than the next is left."""
        return self.command.policy.max_executions - self.executions >= 2

    @property
    def begun(self) -> bool:
        return self.state is JobState.RUNNING

    @property
    def entry(self) -> Entry:
        return self.due_at_ms, self.command.job_id, self.job


class Tables:
    """All of a memory store."""

    def __init__(self) -> None:
        self.rows: dict[int, JobRow] = {}
        self.jobs_by_id: dict[bytes, int] = {}
        self.workers: dict[bytes, tuple[WorkerPresence, int]] = {}
        """Who works here, and when it was last seen."""
        self.next_recovery_ms: dict[str, int] = {}
        self.claims: set[bytes] = set()
        """The tokens of claims that took something."""
        self.made_due = False
        """Whether an act has made a job wait since somebody last asked."""
        self._waiting: defaultdict[tuple[str, Lane], list[Entry]] = defaultdict(list)

    def waiting(self, application: str, lane: Lane) -> Iterator[JobRow]:
        """The lane's waiting jobs in claim order."""
        return (self.rows[entry[2]] for entry in self._waiting[application, lane])

    def leased(self, application: str) -> Iterator[JobRow]:
        """The application's jobs under a lease."""
        return (
            row for row in self.rows.values() if row.state in LEASED_STATES and row.command.application == application
        )

    def wait(self, row: JobRow, state: JobState) -> None:
        """Put a job into its lane."""
        row.state = state
        row.lease = None
        bisect.insort(self._lane_of(row), row.entry)
        self.made_due = True

    def leave(self, row: JobRow) -> None:
        """Take a waiting job out of its lane."""
        lane = self._lane_of(row)
        del lane[bisect.bisect_left(lane, row.entry)]

    def close(self, row: JobRow, state: JobState, code: str | None, now_ms: int) -> None:
        """End a job's generation."""
        row.state = state
        row.code = code
        row.revision += 1
        row.lease = None
        row.ended_at_ms = now_ms

    def held(self, attempt: Attempt) -> JobRow | None:
        """The row that this attempt still holds, by its claim token."""
        row = self.rows.get(attempt.job)
        if row is None or row.lease is None or row.lease.claim_token != attempt.claim_token:
            return None
        return row

    def _lane_of(self, row: JobRow) -> list[Entry]:
        return self._waiting[row.command.application, row.command.lane]


def waits_as(row: JobRow) -> JobState:
    """The state in which a job waits again: between two executions, or as if it had never been claimed."""
    return JobState.RETRYING if row.executions else JobState.PENDING


def owned_once(tables: Tables, attempts: Iterable[Attempt]) -> list[JobRow | None]:
    """The rows these attempts hold, in their order; an attempt that comes twice holds nothing the second time."""
    seen: set[int] = set()
    rows = []
    for attempt in attempts:
        row = None if attempt.job in seen else tables.held(attempt)
        if row is not None:
            seen.add(attempt.job)
        rows.append(row)
    return rows


def act(name: str, body: Callable[[], T], *, reads_only: bool = False) -> Act[T]:
    """An act that needs no steps: everything is at hand."""

    def steps() -> Generator[Any, Any, T]:
        yield from ()
        return body()

    return Act(name, steps, reads_only=reads_only)
