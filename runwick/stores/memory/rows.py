"""The rows of a memory store: what is known of one job, one worker, one application, one limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.administration import Admission
from runwick.contracts.attempts import WorkerPresence
from runwick.contracts.controls import ControlReply, SteerReply
from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt
from runwick.contracts.limits import LimitKind, RateNeed
from runwick.contracts.states import JobState
from runwick.contracts.stores import AttemptRecord
from runwick.policy.lanes import RANK
from runwick.policy.limit_ids import active_id, rate_id, scope_id
from runwick.policy.limits import Scope, Window

Entry = tuple[int, bytes, int]
"""(due_at_ms, job_id, job): entries sort in claim order."""
Standing = tuple[int, bytes, int]
"""(rank, job_id, job): how a job stands in a limit's line."""


@dataclass(slots=True)
class Lease:
    """Who holds a job."""

    attempt_id: bytes
    claim_token: bytes
    worker: bytes
    until_ms: int
    begun_at_ms: int | None = None
    """The executor's begun mark, once it was told."""
    holds: Sequence[bytes] = ()
    """Ids of scopes."""
    fences: Mapping[bytes, int] = field(default_factory=dict)
    """Tokens of those that give them."""


@dataclass(slots=True)
class Worker:
    """Who works here, as it last said itself."""

    presence: WorkerPresence
    seen_at_ms: int
    departed_at_ms: int | None = None
    told_at_ms: int | None = None
    executors: Sequence[ExecutorActivity] = ()


@dataclass(slots=True)
class Look:
    """Somebody wants to see the stack of an attempt."""

    job: int
    claim_token: bytes
    worker: bytes
    asked_at_ms: int
    text: str | None = None
    """The answer."""


class Kept(NamedTuple):
    """What a command that changed something was answered."""

    fingerprint: bytes
    reply: ControlReply | SteerReply | Receipt | None
    """None: what was shown is never kept."""


class WindowKey(NamedTuple):
    """Whose a window key is. It outlives its job."""

    application: str
    job_id: bytes
    fingerprint: bytes
    until_ms: int


class Reused(NamedTuple):
    """A dispatch that found an existing job."""

    application: str
    job_id: bytes
    match: DuplicateMatch
    drift: bool
    deadline_ms: int


@dataclass(slots=True)
class Queue:
    """How a queue stands."""

    revision: int = 0
    since_ms: int | None = None
    """Since when it is paused."""


@dataclass(slots=True)
class ScopeRow:
    """One scope."""

    application: str
    kind: LimitKind
    key: str
    scope: Scope
    revision: int = 1


@dataclass(slots=True)
class WindowRow:
    """One rate window, with all its slots."""

    application: str
    kind: LimitKind
    key: str
    window: Window


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
    cancel_requested_at_ms: int | None = None
    lease: Lease | None = None
    ended_at_ms: int | None = None
    result: bytes | None = None
    history: list[AttemptRecord] = field(default_factory=list)
    line: bytes | None = None
    """The limit in whose line it stands; None: it stands in its lane."""
    called: bytes | None = None
    """The limit that it was last called in for, or promised a place of."""

    @property
    def may_run_ahead(self) -> bool:
        """Whether one execution more than the next is left."""
        return self.command.policy.max_executions - self.executions >= 2

    @property
    def shown_code(self) -> str | None:
        """Why it stands where it stands, for people; a job that is held stands nowhere."""
        return None if self.lease is not None else self.code

    @property
    def begun(self) -> bool:
        return self.state is JobState.RUNNING

    @property
    def waits(self) -> bool:
        return self.state in {JobState.PENDING, JobState.RETRYING}

    @property
    def cancel_stands(self) -> bool:
        """Whether somebody holds it and was asked to stop."""
        return self.lease is not None and self.cancel_requested_at_ms is not None

    def has_expired(self, now_ms: int) -> bool:
        """Whether it may not begin any more."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms

    @property
    def entry(self) -> Entry:
        return self.due_at_ms, self.command.job_id, self.job

    @property
    def standing(self) -> Standing:
        return RANK[self.command.lane.priority], self.command.job_id, self.job

    @property
    def active(self) -> bytes | None:
        """The id of its active key."""
        command = self.command
        key = command.active_key
        return None if key is None else active_id(command.application, command.kind.name, key)

    @property
    def resources(self) -> list[tuple[str, bytes]]:
        """Keys and ids of the resources that it needs, in the order declared."""
        command = self.command
        keys = [need.key for need in command.scopes if need.kind is LimitKind.RESOURCE]
        return [(key, scope_id(command.application, LimitKind.RESOURCE, key)) for key in keys]

    @property
    def rates(self) -> list[bytes]:
        """Ids of the windows that it is charged to, ascending."""
        application = self.command.application
        return sorted({window_of(application, need) for need in self.command.rates})


def window_of(application: str, need: RateNeed) -> bytes:
    """The id of a rate window."""
    length_ms = need.window_ms if need.kind is LimitKind.RESOURCE else None
    return rate_id(application, need.kind, need.key, length_ms)


def waits_as(row: JobRow) -> JobState:
    """The state in which a job waits again: between two executions, or as if it had never been claimed."""
    return JobState.RETRYING if row.executions else JobState.PENDING
