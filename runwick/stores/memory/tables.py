"""What the memory store holds, and the order in which its jobs wait.

One row per job carries everything: what was asked, where it stands, its history. The acts beside this module change
rows; each checks all it has to before it changes the first one, so that an act that raises has changed nothing. What
happens to jobs is told in one list, in the order in which it happens. Several store objects can share the tables, as
processes share a file.
"""

import bisect
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from runwick.contracts.administration import Admission, Capability, admits
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.errors import StoreError
from runwick.contracts.history import AuditRecord, EventKind, JobEvent
from runwick.contracts.states import LEASED_STATES, JobState
from runwick.contracts.stores import Act
from runwick.policy.lines import Called, Calling
from runwick.stores import refusals
from runwick.stores.memory.limits import Limits, OpenLine
from runwick.stores.memory.rows import (
    Application,
    Entry,
    JobRow,
    Kept,
    Look,
    Queue,
    Reused,
    Standing,
    WindowKey,
    Worker,
)

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
        self.queues: dict[tuple[str, str], Queue] = {}
        """Those that somebody has registered or dispatched to."""
        self.limits: Final = Limits()
        self.active: dict[bytes, int] = {}
        """Which live job has an active key."""
        self.window_keys: dict[bytes, WindowKey] = {}
        self.reused: dict[bytes, Reused] = {}
        """By operation id."""
        self._waiting: defaultdict[tuple[str, Lane], list[Entry]] = defaultdict(list)
        self._lines: defaultdict[bytes, list[Standing]] = defaultdict(list)
        self._freed: Counter[bytes] = Counter()
        """Places of scopes that the act under way gave back."""
        self._left: list[tuple[bytes, int, bytes]] = []
        """Limit, due time and job id of those that were called in and end instead."""

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

    def know_queue(self, application: str, queue: str) -> Queue:
        """The queue, which is open when it is new."""
        return self.queues.setdefault((application, queue), Queue())

    def is_paused(self, application: str, queue: str) -> bool:
        stands = self.queues.get((application, queue))
        return stands is not None and stands.since_ms is not None

    def waiting(self, application: str, lane: Lane) -> Iterator[JobRow]:
        """The lane's waiting jobs in claim order, but for those in a line."""
        return (self.rows[entry[2]] for entry in self._waiting[application, lane])

    def line(self, limit: bytes) -> list[JobRow]:
        """Those that stand in a limit's line, by rank and in the order of their ids."""
        return [self.rows[standing[2]] for standing in self._lines[limit]]

    def leased(self, application: str) -> Iterator[JobRow]:
        """The application's jobs under a lease."""
        return (
            row for row in self.rows.values() if row.state in LEASED_STATES and row.command.application == application
        )

    def wait(self, row: JobRow, state: JobState) -> None:
        """Put a job into its lane. What an attempt held is given back."""
        row.state = state
        self._let_go(row)
        self._stand(row)
        self.made_due = True

    def leave(self, row: JobRow) -> None:
        """Take a waiting job out of its lane, or out of the line in which it stands."""
        if row.line is not None:
            line = self._lines[row.line]
            del line[bisect.bisect_left(line, row.standing)]
            row.line = None
        else:
            lane = self._lane_of(row)
            del lane[bisect.bisect_left(lane, row.entry)]

    def park(self, row: JobRow, limit: bytes) -> None:
        """Move a job from its lane to a limit's line."""
        self.leave(row)
        row.line, row.called = limit, None
        bisect.insort(self._lines[limit], row.standing)

    def call(self, row: JobRow, limit: bytes, due_at_ms: int | None) -> None:
        """Put a job where it stands in its lane, called in for or promised a place of a limit.

        Args:
            due_at_ms: its new due time; None leaves it.
        """
        self.leave(row)
        row.called = limit
        row.due_at_ms = row.due_at_ms if due_at_ms is None else due_at_ms
        self._stand(row)
        self.made_due = True

    def call_in(self, now_ms: int) -> None:
        """Call others for what the act gave back: every act that ends or frees jobs comes here when it has. Scopes come
        by id, then windows; within one the longest due first."""
        calling = Calling(self.open_line, now_ms)
        left = sorted(self._left)
        for scope_id in sorted({*self._freed, *(limit for limit, *_ in left)} & self.limits.scopes.keys()):
            scope = self.limits.scopes[scope_id].scope
            if places := self._freed[scope_id]:
                calling.into_scope(scope, scope.free(places))
            for _ in (limit for limit, *_ in left if limit == scope_id):
                calling.pass_on(scope, now_ms)
        for limit, due_at_ms, _ in left:
            if limit in self.limits.windows:
                calling.pass_on(self.limits.windows[limit].window, due_at_ms)
        self._freed.clear()
        self._left.clear()
        self.take_all_calls(calling, now_ms)

    def take_calls(self, called: Sequence[Called[JobRow]]) -> None:
        """Do what was decided."""
        for call in called:
            self.call(call.job, call.limit, call.due_ms)

    def take_all_calls(self, calling: Calling[JobRow], now_ms: int) -> None:
        """Do what was decided, and go on where that had to end."""
        self.take_calls(calling.called)
        while calling.called and (owed := calling.owed):
            calling = Calling(self.open_line, now_ms)
            for limit, calls in owed.items():
                calling.make_up(self.limits[limit], calls)
            self.take_calls(calling.called)

    def open_line(self, limit: bytes) -> OpenLine:
        """A line as it stands now."""
        return OpenLine(self.line(limit), self.is_paused)

    def close(self, row: JobRow, state: JobState, code: str | None, now_ms: int) -> None:
        """End a job's generation. What its attempt held, or what it was called in for, is given back."""
        if row.called is not None:
            self._left.append((row.called, row.due_at_ms, row.command.job_id))
            row.called = None
        self._let_go(row)
        if row.active is not None:
            del self.active[row.active]
        row.state = state
        row.code = code
        row.revision += 1
        row.ended_at_ms = now_ms
        self.tell(row, EventKind.JOB_ENDED, now_ms, state=state.value, code=code)

    def close_cancelled(self, row: JobRow, now_ms: int) -> None:
        """End a job that somebody cancelled, without having run it."""
        self.close(row, JobState.CANCELLED, "cancel_requested", now_ms)

    def close_expired(self, row: JobRow, now_ms: int) -> None:
        """End a job that had not begun by its expiry."""
        self.close(row, JobState.FAILED, "expired", now_ms)

    def tell(self, row: JobRow, what: EventKind, now_ms: int, *, generation: int | None = None, **details: Any) -> None:
        """Add to what happened. Without a generation it is about the present one."""
        command = row.command
        event = JobEvent(
            cursor=str(len(self.events) + 1),
            what=what,
            job_id=command.job_id,
            kind=command.kind,
            lane=command.lane,
            generation=row.generation if generation is None else generation,
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

    def _let_go(self, row: JobRow) -> None:
        if row.lease is not None:
            self._freed.update(row.lease.holds)
        row.lease = None

    def _stand(self, row: JobRow) -> None:
        bisect.insort(self._lane_of(row), row.entry)

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
