"""What the memory store holds, and the order in which its jobs wait.

One row per job carries everything: what was asked, where it stands, its history. The acts beside this module change
rows; each checks all it has to before it changes the first one, so that an act that raises has changed nothing. What
happens to jobs is told in one list, in the order in which it happens. Several store objects can share the tables, as
processes share a file.
"""

import bisect
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, TypeVar

from runwick.contracts.administration import Admission, Capability, admits
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.errors import StoreError
from runwick.contracts.history import AuditRecord, EventKind, JobEvent
from runwick.contracts.states import LEASED_STATES, JobState
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.memory.rows import Application, Entry, JobRow, Kept, Look, Worker

T = TypeVar("T")

_KNOWN: Final = frozenset(capability.value for capability in Capability)


class Tables:
    """All of a memory store."""

    def __init__(self, store_id: bytes) -> None:
        self.store_id = store_id
        self.lock: Final = threading.Lock()
        """Held by whoever runs an act: acts come one after the other."""
        self.applications: dict[str, Application] = {}
        self.rows: dict[int, JobRow] = {}
        self.jobs_by_id: dict[bytes, int] = {}
        self.workers: dict[bytes, Worker] = {}
        self.next_recovery_ms: dict[str, int] = {}
        self.claims: set[bytes] = set()
        """The tokens of claims that took something."""
        self.commands: dict[tuple[str, bytes], Kept] = {}
        """What controls were answered, by application and command id."""
        self.looks: dict[bytes, Look] = {}
        """By attempt id."""
        self.events: list[tuple[str, JobEvent]] = []
        """All that happened, each with its application; an event's cursor is its place, which counts those up to it."""
        self.audit: list[tuple[str, AuditRecord]] = []
        """What operators did, alike."""
        self.made_due = False
        """Whether an act has made a job wait since somebody last asked."""
        self.wanted: set[bytes] = set()
        """Workers that were asked for something since then."""
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

    def find(self, application: str, job_id: bytes) -> JobRow | None:
        """The application's job of that id."""
        job = self.jobs_by_id.get(job_id)
        row = None if job is None else self.rows[job]
        return None if row is None or row.command.application != application else row

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
        self.tell(row, EventKind.JOB_ENDED, now_ms, state=state.value, code=code)

    def close_cancelled(self, row: JobRow, now_ms: int) -> None:
        """End a job that somebody cancelled, without having run it."""
        self.close(row, JobState.CANCELLED, "cancel_requested", now_ms)

    def close_expired(self, row: JobRow, now_ms: int) -> None:
        """End a job that had not begun by its expiry."""
        self.close(row, JobState.FAILED, "expired", now_ms)

    def tell(self, row: JobRow, what: EventKind, now_ms: int, **details: Any) -> None:
        """Add to what happened."""
        command = row.command
        event = JobEvent(
            cursor=str(len(self.events) + 1),
            what=what,
            job_id=command.job_id,
            kind=command.kind,
            lane=command.lane,
            generation=row.generation,
            at_ms=now_ms,
            **details,
        )
        self.events.append((command.application, event))

    def held(self, attempt: Attempt) -> JobRow | None:
        """The row that this attempt still holds, by its claim token."""
        row = self.rows.get(attempt.job)
        if row is None or row.lease is None or row.lease.claim_token != attempt.claim_token:
            return None
        return row

    def _lane_of(self, row: JobRow) -> list[Entry]:
        return self._waiting[row.command.application, row.command.lane]


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
