"""The rows of a memory store: what is known of one job, one worker, one application."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.administration import Admission
from runwick.contracts.attempts import WorkerPresence
from runwick.contracts.controls import ControlReply
from runwick.contracts.dispatching import Command
from runwick.contracts.states import JobState
from runwick.contracts.stores import AttemptRecord

Entry = tuple[int, bytes, int]
"""(due_at_ms, job_id, job): entries sort in claim order."""


@dataclass(slots=True)
class Lease:
    """Who holds a job."""

    attempt_id: bytes
    claim_token: bytes
    worker: bytes
    until_ms: int
    begun_at_ms: int | None = None
    """The executor's begun mark, once it was told."""


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
    reply: ControlReply


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

    @property
    def may_run_ahead(self) -> bool:
        """Whether one execution more than the next is left."""
        return self.command.policy.max_executions - self.executions >= 2

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


def waits_as(row: JobRow) -> JobState:
    """The state in which a job waits again: between two executions, or as if it had never been claimed."""
    return JobState.RETRYING if row.executions else JobState.PENDING
