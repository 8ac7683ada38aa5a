"""What operators read in lists: jobs by filter, runs with what they cost, how far behind the queues are.

Whoever reads may be allowed some of it only; what he is not allowed is left out before anything is counted or paged.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.history import AuditRecord
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage

EXAMINED_MAX: Final = 5_000
"""Rows that one page looks at, so that it is quick whatever the filter; a page may therefore be short, even empty,
although more follows."""
COUNTED_MAX: Final = 10_000
"""Jobs of one queue are counted up to here."""
RUNS_MAX: Final = 2_000
"""Runs of one answer."""


class Reach(msgspec.Struct, frozen=True):
    """Jobs that somebody may see: those of these queues and of these tenants; None is all."""

    queues: frozenset[str] | None = None
    tenants: frozenset[str | None] | None = None
    """None among them: jobs without a tenant."""

    def covers(self, queue: str, tenant: str | None) -> bool:
        """Whether such a job is among them."""
        return (self.queues is None or queue in self.queues) and (self.tenants is None or tenant in self.tenants)


Within = Sequence[Reach] | None
"""What one of these covers; None: everything, and an empty one nothing."""


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs. What is None does not matter."""

    states: frozenset[JobState] | None = None
    queue: str | None = None
    name: str | None = None
    """The stored name of their type."""
    tenant: str | None = None
    code: str | None = None
    """Why they stand where they stand: ``poison_job``."""
    created_from_ms: int | None = None
    created_until_ms: int | None = None
    """Before this."""


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a list, as it stands."""

    job_id: bytes
    kind: Kind
    lane: Lane
    state: JobState
    code: str | None
    generation: int
    revision: int
    executions: int
    max_executions: int
    created_at_ms: int
    due_at_ms: int | None
    """Of a waiting job."""
    begun_at_ms: int | None
    """Of a running one, as far as that was told; None while it is only handed over."""
    ended_at_ms: int | None
    cancel_requested_at_ms: int | None
    tenant: str | None
    payload_bytes: int


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs, the latest first: by their end, where they are asked for by one end state that is not success; else by
    their creation."""

    jobs: Sequence[JobSummary]
    cursor: str | None
    """Reading after it goes on; None: there are no more. It means something to the store alone that gave it, and with
    the same filter."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that has ended, as figures and plots need it."""

    job_id: bytes
    generation: int
    number: int
    kind: Kind
    queue: str
    tenant: str | None
    outcome: str
    code: str | None
    begun_at_ms: int | None
    ended_at_ms: int
    payload_bytes: int
    usage: Usage | None
    death: str | None
    """The cause, where its executor died."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """How far behind one queue is. Counts end at `COUNTED_MAX`, which means so many or more."""

    queue: str
    due: int
    later: int
    """Waiting for a due time: delayed ones and retries."""
    blocked: int
    """Standing in a limit's line."""
    leased: int
    """Claimed: handed over, or running."""
    oldest_due_at_ms: int | None
    """When the job was due that has waited longest; None while none is due."""


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records of the audit trail. What is None does not matter."""

    action: str | None = None
    actor: str | None = None
    """The subject."""
    job_id: bytes | None = None
    target: str | None = None
    """As `AuditRecord.target` has it, or its first word: ``queue``."""
    at_from_ms: int | None = None
    at_until_ms: int | None = None
    """Before this."""


class AuditList(msgspec.Struct, frozen=True):
    """Some of the trail, the latest first. A page may be short, as a `JobPage`."""

    records: Sequence[AuditRecord]
    cursor: str | None
    """As `JobPage.cursor`."""
