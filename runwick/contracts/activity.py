"""What workers tell about themselves while they work."""

from collections.abc import Sequence

import msgspec

from runwick.contracts.attempts import Held, WorkerPresence


class ExecutorActivity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one executor (or slot) does now. Nothing in it is private."""

    number: int
    pool: str
    phase: str
    """``idle``, ``starting`` or ``leaving``; for one that runs, ``decode``, ``provide``, ``handle``, ``encode``,
    ``close`` or ``stopping``."""
    process: int | None = None
    job_id: bytes | None = None
    attempt_id: bytes | None = None
    name: str | None = None
    """The job's stored name."""
    begun_at_ms: int | None = None
    cpu_us: int | None = None
    """CPU time of the running attempt so far."""
    rss_bytes: int | None = None
    attempts: int = 0
    """How many it has ended."""
    restarts: int = 0
    """How often its place was filled anew."""
    restarted_for: str | None = None
    """Why it was last."""


class Mark(msgspec.Struct, frozen=True):
    """An executor's mark that a run has begun."""

    job: int
    claim_token: bytes
    begun_at_ms: int


class StackAnswer(msgspec.Struct, frozen=True):
    """The Python stack of a running attempt, as it was asked for."""

    attempt_id: bytes
    text: str
    """At most 16 KiB, storable."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tells the store with one renewal call."""

    presence: WorkerPresence
    executors: Sequence[ExecutorActivity] | None = None
    """None leaves what was told before."""
    marks: Sequence[Mark] = ()
    stacks: Sequence[StackAnswer] = ()


class StackRequest(msgspec.Struct, frozen=True):
    """Somebody wants to see the stack of this attempt."""

    attempt_id: bytes
    job: int
    claim_token: bytes


class Beat(msgspec.Struct, frozen=True):
    """The store's answer to one renewal call."""

    lost: frozenset[int]
    """Jobs (store keys) whose lease is no longer this worker's."""
    locked: frozenset[int]
    """Jobs whose row somebody's transaction holds; they keep their deadline."""
    recovery_due: bool
    """This worker is the one that runs the application's recovery pass now."""
    cancels: Sequence[Held] = ()
    """Attempts of this worker whose job somebody cancelled; repeated until they have ended, all of them: one
    that does not end must not keep others from being heard of."""
    looks: Sequence[StackRequest] = ()
    """Stacks of this worker's attempts that were asked for within half a minute and are not answered yet. At most
    16, so that none that is never answered keeps later ones out for long."""


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, as it last told."""

    presence: WorkerPresence
    seen_at_ms: int
    departed_at_ms: int | None
    told_at_ms: int | None
    """When it last told what its executors do."""
    executors: Sequence[ExecutorActivity]
