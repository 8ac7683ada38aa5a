"""What the memory store holds, and the order in which its jobs wait.

One row per job carries everything: what was asked, where it stands, its history. The acts beside this module change
rows; each checks all it has to before it changes the first one, so that an act that raises has changed nothing. Several
store objects can share the tables, as processes share a file.
"""

import bisect
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from runwick.contracts.administration import Admission, Capability, admits
from runwick.contracts.attempts import Attempt, Lane, WorkerPresence
from runwick.contracts.dispatching import Command
from runwick.contracts.errors import StoreError
from runwick.contracts.states import LEASED_STATES, JobState
from runwick.contracts.stores import Act, AttemptRecord
from runwick.stores import refusals

T = TypeVar("T")

_KNOWN: Final = frozenset(capability.value for capability in Capability)

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
class Application:
    """How one application stands."""

    admission: Admission = Admission.OPEN
    capabilities: set[str] = field(default_factory=set)


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

    def __init__(self, store_id: bytes) -> None:
        self.store_id = store_id
        self.lock: Final = threading.Lock()
        """Held by whoever runs an act: acts come one after the other."""
        self.applications: dict[str, Application] = {}
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

    def know(self, application: str) -> Application:
        """The application, which is open and capable of everything when it is new."""
        return self.applications.setdefault(application, Application(capabilities=set(_KNOWN)))

    def refusal(self, act: str, application: str) -> StoreError | None:
        """Why this application may not run the act now; None when it may."""
        stands = self.applications.get(application)
        if stands is None:
            return None
        if not admits(stands.admission, act):
            return refusals.admission_closed(application, stands.admission, act)
        is_new_work = not admits(Admission.DRAIN, act)
        if is_new_work and (unknown := stands.capabilities - _KNOWN):
            return refusals.capability_unknown(application, min(unknown))
        return None

    def admit(self, act: str, application: str) -> None:
        """Go on only if this application may run the act now.

        Raises:
            StoreError: it may not.
        """
        if (refusal := self.refusal(act, application)) is not None:
            raise refusal

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


def admit_rows(tables: Tables, act: str, rows: Iterable[JobRow | None]) -> None:
    """Go on only if the applications of these jobs may run the act now.

    Raises:
        StoreError: one may not.
    """
    for row in rows:
        if row is not None:
            tables.admit(act, row.command.application)


def act(name: str, body: Callable[[], T], *, reads_only: bool = False) -> Act[T]:
    """An act that needs no steps: everything is at hand."""

    def steps() -> Generator[Any, Any, T]:
        yield from ()
        return body()

    return Act(name, steps, reads_only=reads_only)
