"""What a store can do, as narrow protocols. Each part of Runwick takes the narrowest one it needs.

An act is one thing a store does, under the same name in every store. It is described by a small generator that
yields statements and receives rows, so that the same source serves a blocking and an asynchronous caller; the
transaction around it belongs to the driver that runs it::

    receipts = store.run(store.dispatch(commands))               # blocking
    claim = await store.run_async(store.claim(plan))             # on an event loop
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from runwick.contracts.activity import Beat, Report, StackAnswer, WorkerRecord
from runwick.contracts.administration import Standing
from runwick.contracts.attempts import Attempt, Begun, Claim, ClaimPlan, Held, Kind, Lane, WorkerPresence
from runwick.contracts.controls import ControlCommand, ControlReply, SteerCommand, SteerReply
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.history import AuditPage, EventPage
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeNeed, ScopeRecord, Tended
from runwick.contracts.listing import (
    AuditFilter,
    AuditList,
    Backlog,
    JobFilter,
    JobPage,
    RunRecord,
    Within,
)
from runwick.contracts.outcomes import Answer, BlackBox, Death, ErrorDetail, Settlement
from runwick.contracts.revealing import AuditNote, RevealCommand, Revealed
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from runwick.contracts.waiting import WaitReport

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Act(Generic[T]):
    """One act, ready to be run. It may be run again: every run starts the steps anew."""

    __slots__ = ("name", "reads_only", "steps")

    def __init__(self, name: str, steps: Callable[[], Generator[Any, Any, T]], *, reads_only: bool = False) -> None:
        self.name = name
        self.steps = steps
        self.reads_only = reads_only


class Runs(Protocol):
    """Runs acts, each in one transaction.

    Raises (both methods):
        AdmissionClosed: the application's mode does not admit the act; nothing was written.
        StoreHistoryBroken: the store is another one than this process knew, or it went back in time.
        StoreError: nothing was written.
        OutcomeUnknown: the commit's answer was lost.
        asyncio.CancelledError: as ever; its ``__cause__`` is an `OutcomeUnknown` when the act had been sent.
    """

    def run(self, act: Act[T]) -> T: ...
    async def run_async(self, act: Act[T]) -> T: ...


class DispatchStore(Runs, Protocol):
    @property
    def profile(self) -> str:
        """The durability rule a receipt of this store confirms."""
        ...

    @property
    def store_id(self) -> bytes | None:
        """The identity of the store this process works with; None before it was first opened."""
        ...

    def now_ms(self) -> int:
        """The store's time as far as this process knows it, without asking."""
        ...

    def dispatch(
        self, commands: Sequence[Command], *, continue_on_conflict: bool = False, note: AuditNote | None = None
    ) -> Act[list[Receipt | ItemFailure]]:
        """Create these jobs, all or none; receipts in input order. A command sent again answers its first receipt.
        Uniqueness keys are judged as if the commands came one after the other.

        Args:
            commands: all of one application.
            continue_on_conflict: a uniqueness conflict is that item's failure alone, and never raised.
            note: for the audit trail, where somebody dispatches by hand; with it there is exactly one command, whose
                operation id is a command id. One row is written with the job, and none where an existing job is
                answered.

        Raises (when run):
            CommandExpired: one was not applied before its deadline, and now never will be; nothing was written.
            UniquenessConflict: of the first item that meets one; nothing was written.
            StoreError: a command has rate windows and the application's capability for them is not active (code
                ``rate_admission_not_active``), or the command id of a dispatch by hand was used for something else
                (code ``operation_conflict``); nothing was written.
        """
        ...

    def resolve(self, application: str, operation_id: bytes) -> Act[Receipt | None]:
        """The receipt of an operation that was applied; None when it was not, so far."""
        ...


class ClaimStore(Runs, Protocol):
    def register(
        self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], scopes: Sequence[ScopeNeed] = ()
    ) -> Act[None]:
        """Make known what a worker is about to serve; it counts as new work, so only an open application takes it.
        Scopes that are not there are created, the others stay as they are."""
        ...

    def claim(self, plan: ClaimPlan) -> Act[Claim]:
        """Take due jobs under a lease; those with inline payloads are begun and charged in the same write. A job that
        meets a full limit is moved aside instead; neither that nor being called in again raises its revision."""
        ...

    def begin(self, attempt: Attempt) -> Act[Begun]:
        """Authorise and charge a reserved attempt and read its payload. A job that is cancelled or has expired is
        closed instead, uncharged."""
        ...

    def release(self, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
        """Give back attempts that provably never reached their handler: charge and number are taken back, no attempt
        row is left, the due time stays. Not counted by the unstarted guard. A job that somebody cancelled meanwhile is
        closed instead, uncharged: CANCELLED."""
        ...


class SettleStore(Runs, Protocol):
    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        """End these attempts in one fenced batch; answers in input order. Where a cancel stands on a row, what its
        settlement says for that is written: CANCELLED. Idempotent: the same settlement sent again answers DONE and
        writes nothing, whichever of the two was written.

        Raises:
            SettlementRejected: the batch was refused for its content; nothing of it was written.
        """
        ...


class LeaseStore(Runs, Protocol):
    def renew(self, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
        """Renew the leases still owned, tell what the worker and its executors do, write begun marks, answer stacks
        that were asked for, hear of cancels, and ask whether the recovery pass is due. Marks of attempts that are no
        longer the worker's change nothing; neither marks nor renewals raise a revision."""
        ...

    def recover(
        self, application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None = None
    ) -> Act[int]:
        """Close up to `limit` attempts whose lease ran out, as `decide` says; answers how many. An attempt that
        never began is charged nothing and gets no history row but counts for the unstarted guard. The attempts carry
        no payload.

        Args:
            application: whose attempts.
            decide: the settlement of one; it must do no more than decide, and may be asked twice.
            limit: at most this many; as many as that mean that there may be more.
            worker: a worker that is known to be dead, with everything it ran: all its leases count as run out, no
                others do, and its presence ends.
        """
        ...

    def expire(self, application: str, limit: int) -> Act[int]:
        """Close up to `limit` waiting jobs that had not begun by their expiry as failed, ``expired``; answers how
        many."""
        ...

    def tend(self, application: str, after: bytes | None, limit: int) -> Act[Tended]:
        """Look through up to `limit` limits with a line, from behind `after`: count their holds, and call in what room
        there is for. It repairs what a crash left behind; at rest it finds nothing. Forgets uniqueness keys whose
        window is over."""
        ...

    def depart(self, presence: WorkerPresence) -> Act[None]:
        """Say good-bye: the presence ends at once."""
        ...


class ControlStore(Runs, Protocol):
    def control(self, command: ControlCommand) -> Act[ControlReply]:
        """Do what an operator asks, to all targets in one transaction with one audit row for each job that is changed.
        The act is named after the action. A command sent again answers what it answered first, if that changed
        anything; otherwise it is judged anew.

        Raises:
            InvalidArgument: a job is named twice (code ``invalid_argument``).
            StoreError: the command id was used for something else (code ``operation_conflict``).
            StoreUnavailable: somebody's transaction holds one of the jobs; nothing was written, try again.
        """
        ...

    def steer(self, command: SteerCommand) -> Act[SteerReply]:
        """Pause or resume a queue, or change a capacity, with one audit row if that changes anything. The act is named
        after the action. Raises, and answers a command that is sent again, as `control`."""
        ...


class ListStore(Runs, Protocol):
    """What operators look through."""

    def jobs(self, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int) -> Act[JobPage]:
        """Up to `limit` jobs behind that cursor (None: from the latest).

        Raises:
            InvalidArgument: `after` is no cursor of this store and of such a filter (code ``invalid_argument``).
        """
        ...

    def runs(self, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
        """The attempts that ended last, up to `limit` (at most `RUNS_MAX`), the latest first; of one job type, those of
        its last jobs. Releases and attempts that never began are none."""
        ...

    def backlogs(self, application: str) -> Act[list[Backlog]]:
        """Every queue with live jobs, by name."""
        ...

    def names(self, application: str) -> Act[list[str]]:
        """The stored names of all job types that ever had a job, sorted."""
        ...

    def audited(self, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
        """Up to `limit` records of the audit trail behind that cursor, the latest first.

        Raises:
            InvalidArgument: as `jobs`.
        """
        ...

    def reveal(self, command: RevealCommand) -> Act[Revealed | None]:
        """Show one secret; the audit row of it is in the same transaction. None: there is no such job, and nothing was
        written. Sent again with the same command id, it answers again and writes no second row.

        Raises:
            StoreError: the command id was used for something else (code ``operation_conflict``).
        """
        ...


class HistoryStore(Runs, Protocol):
    def events(self, application: str, after: str | None, limit: int) -> Act[EventPage]:
        """What was committed behind that cursor (None: from the beginning), in commit order. It never skips what a
        slow transaction commits late: it ends in front of the oldest one that is open.

        Raises:
            InvalidArgument: `after` is no cursor of this store (code ``invalid_argument``).
        """
        ...

    def audit(self, application: str, after: str | None, limit: int) -> Act[AuditPage]:
        """What operators did, as `events` reads."""
        ...

    def workers(self, application: str) -> Act[list[WorkerRecord]]:
        """The workers seen within 24 hours, the latest start first."""
        ...

    def stack(self, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
        """The stack that was asked for, once its worker has answered."""
        ...


class LimitStore(Runs, Protocol):
    """What may run next, for people."""

    def why(self, application: str, job_id: bytes) -> Act[WaitReport | None]:
        """Every reason for which a job waits, all of one moment; None when there is no such job."""
        ...

    def queues(self, application: str) -> Act[list[QueueRecord]]:
        """By name."""
        ...

    def scopes(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
        """Up to `limit`, by id, from behind that one."""
        ...

    def rates(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
        """As `scopes`."""
        ...


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What is left for a worker's lanes and kinds."""

    due: int
    """Waiting and due now, decodable, in the lanes asked for."""
    later: int
    """Waiting for a due time (delayed jobs and retries), decodable."""
    leased: int
    """Claimed by anybody."""
    undecodable: int
    """Waiting in the lanes but of a kind not asked for."""
    postponed: int
    """Of `later`, those that a worker has put off: between two executions, or until there is room in a rate window."""
    oldest_due_ms: int | None
    """How long the longest-waiting due job has been due; None when none is."""
    blocked: int = 0
    """Of those due, the ones that wait in a limit's line."""
    paused: int = 0
    """Waiting in queues that are paused; in none of the figures above."""


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One closed attempt of a job's history."""

    attempt_id: bytes
    generation: int
    number: int
    outcome: str
    code: str | None
    begun_at_ms: int | None
    ended_at_ms: int
    usage: Usage | None
    worker: bytes | None = None
    delay_ms: int | None = None
    """How long the job was made to wait after it, as it was drawn."""
    death: Death | None = None
    error: ErrorDetail | None = None
    """Its detail, while it is kept; so is the next."""
    black_box: BlackBox | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it stands."""

    job_id: bytes
    kind: Kind
    lane: Lane
    state: JobState
    code: str | None
    """Why it stands there: for a failed job the reason."""
    generation: int
    revision: int
    executions: int
    max_executions: int
    created_at_ms: int
    due_at_ms: int | None
    """For a waiting job: when it is due."""
    ended_at_ms: int | None
    tenant: str | None
    payload_bytes: int
    result: bytes | None
    """JSON of the profile; None when there is none or it was pruned."""
    attempts: Sequence[AttemptRecord]
    """Closed attempts of all generations, oldest first."""
    expires_at_ms: int | None = None
    cancel_requested_at_ms: int | None = None
    """When somebody cancelled it, whatever it ended in."""
    crashes: int = 0
    """Attempts of this generation that killed their executor; for a live job."""
    worker: bytes | None = None
    """Who holds it now, if somebody does; so for the next two."""
    attempt_id: bytes | None = None
    begun_at_ms: int | None = None
    """When its handler began, as far as that was told; None while it is only handed over."""


class CostlyRun(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt among those that cost most."""

    job_id: bytes
    kind: Kind
    number: int
    outcome: str
    usage: Usage


class ReadStore(Runs, Protocol):
    def standing(self, application: str) -> Act[Standing]:
        """How the store takes work of an application, one that it does not know yet included."""
        ...

    def job(self, application: str, job_id: bytes) -> Act[JobRecord | None]: ...
    def outlook(self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]: ...
    def costliest(self, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
        """The attempts with the highest ``cpu_us`` or ``rss_peak_bytes``."""
        ...


class Store(
    DispatchStore,
    ClaimStore,
    SettleStore,
    LeaseStore,
    ControlStore,
    ListStore,
    HistoryStore,
    LimitStore,
    ReadStore,
    Protocol,
):
    """All of it, for the composition root alone."""

    @property
    def description(self) -> str:
        """One phrase for people, without secrets: ``sqlite /srv/app/thumbs.db (wal, synchronous=full)``."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What `check` found that an operator should know although nothing is refused, one sentence each."""
        ...

    def check(self) -> None:
        """Open the store and check revision and profile.

        Raises:
            StoreError: with the code of what is wrong.
        """
        ...

    def wake_on_work(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` (from any thread) soon after somebody made work due; returns how to stop that. A hint only:
        it may come too often or not at all, so polling stays the truth."""
        ...

    def wake_on_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` (from any thread) soon after somebody cancelled or wants to look at what that worker runs;
        returns how to stop that. A hint as well."""
        ...

    def close(self) -> None: ...
