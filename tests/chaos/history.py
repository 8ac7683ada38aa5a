"""What the checker judges: everything that was asked, that ran and that stands in the store, as plain data.

Nothing here decides anything. Times in milliseconds are since 1970-01-01 UTC: a client's by its host's clock, the
store's by its own, which in every campaign is the same clock. Marks carry CLOCK_BOOTTIME too, which puts runs in order.
"""

import collections
import functools
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from runwick.contracts.controls import ControlAnswer, JobTarget
from runwick.contracts.history import AuditRecord, JobEvent
from runwick.contracts.policies import JobPolicy
from runwick.contracts.stores import AttemptRecord, JobRecord


class Wanted(msgspec.Struct, frozen=True):
    """One job that a client asked for."""

    operation_id: bytes
    job_id: bytes
    not_before_ms: int = 0
    """A time before which it must not be claimed, by the store's clock."""


class Returned(msgspec.Struct, frozen=True):
    """One attempt that a worker wanted to give back before it began."""

    attempt_id: bytes
    job_id: bytes


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the book: a client's request, how it was answered, or what a worker gives back."""

    what: Literal["invoke", "ok", "fail", "unknown", "back"]
    """``fail``: it was said that nothing was written. ``unknown``: nobody could say."""
    call: int
    at_ms: int
    act: str = ""
    """``dispatch``, ``batch`` or a control's name; of the request alone, like the next three."""
    jobs: Sequence[Wanted] = ()
    command_id: bytes | None = None
    targets: Sequence[JobTarget] = ()
    receipts: Sequence[bytes] = ()
    """Job ids, in the order in which they were answered."""
    answers: Sequence[ControlAnswer] = ()
    replayed: bool = False
    code: str | None = None
    """Of a failure."""
    returned: Sequence[Returned] = ()
    """Of ``back`` alone."""


class Call(msgspec.Struct, frozen=True):
    """One request with its answer; without one the client died, or still waits."""

    asked: Line
    answer: Line | None

    @property
    def ended(self) -> str:
        return "unknown" if self.answer is None else self.answer.what


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a handler wrote down at one moment of its run, in one append."""

    job_id: bytes
    attempt_id: bytes
    generation: int
    step: Literal["begin", "on", "end", "left"]
    """``left`` is written by a process that the run started."""
    pid: int
    born: int
    """The start of the process, in clock ticks since boot: with the pid it names the process for good."""
    at_ns: int
    """CLOCK_BOOTTIME."""
    at_ms: int
    cpu_us: int = 0
    """CPU time of the executor process since its birth."""


class StoredJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the store has it."""

    record: JobRecord
    operation_id: bytes
    policy: JobPolicy
    payload_bytes: int
    lives_ms: int | None
    """How long it had to begin, from its creation; None: for ever."""


class StoredClosing(msgspec.Struct, frozen=True, kw_only=True):
    """How one generation ended."""

    job_id: bytes
    generation: int
    state: str
    code: str | None
    ended_at_ms: int
    revision: int | None = None
    """None where the store does not keep it, like the next."""
    executions: int | None = None
    cancel_requested_at_ms: int | None = None


class Fault(msgspec.Struct, frozen=True):
    """Something that the campaign did."""

    what: str
    at_ms: int


class Residue(msgspec.Struct, frozen=True):
    """Something that was counted before and after."""

    what: str
    before: int
    after: int


class History(msgspec.Struct, kw_only=True, dict=True):
    """One run, whole."""

    lines: Sequence[Line]
    marks: Sequence[Mark]
    jobs: Sequence[StoredJob]
    closings: Sequence[StoredClosing]
    claimed_at_ms: Mapping[bytes, int]
    """When an attempt was claimed, by its id, as far as that is kept."""
    events: Sequence[JobEvent]
    followed: Sequence[JobEvent]
    """The same as somebody read them page by page while it all happened."""
    audit: Sequence[AuditRecord]
    live: int
    """Jobs that the store counts as waiting or leased."""
    read_at_ms: int
    lease_ms: int
    declared_lost: frozenset[bytes] = frozenset()
    """Attempts of which a worker said that their lease was lost."""
    faults: Sequence[Fault] = ()
    residues: Sequence[Residue] = ()

    @functools.cached_property
    def calls(self) -> list[Call]:
        answers = {line.call: line for line in self.lines if line.what != "invoke"}
        return [Call(line, answers.get(line.call)) for line in self.lines if line.what == "invoke"]

    @functools.cached_property
    def dispatches(self) -> list[Call]:
        return [call for call in self.calls if call.asked.act in ("dispatch", "batch")]

    @functools.cached_property
    def controls(self) -> list[Call]:
        return [call for call in self.calls if call.asked.act not in ("dispatch", "batch")]

    @functools.cached_property
    def given_back(self) -> dict[bytes, int]:
        """How many attempts of each job were given back, of those that begin with their claim. Whoever wanted to give
        one back, and then did not, has left it to recovery, which wrote its row."""
        rows = {attempt.attempt_id for job in self.jobs for attempt in job.record.attempts}
        wanted = {one.attempt_id: one.job_id for line in self.lines for one in line.returned}
        return collections.Counter(job_id for attempt_id, job_id in wanted.items() if attempt_id not in rows)

    @functools.cached_property
    def by_id(self) -> dict[bytes, StoredJob]:
        return {job.record.job_id: job for job in self.jobs}

    @functools.cached_property
    def ends(self) -> dict[tuple[bytes, int], StoredClosing]:
        """By job and generation."""
        return {(closing.job_id, closing.generation): closing for closing in self.closings}

    @functools.cached_property
    def runs(self) -> dict[bytes, list[Mark]]:
        """The marks of each attempt in the order of time."""
        runs: dict[bytes, list[Mark]] = collections.defaultdict(list)
        for mark in sorted(self.marks, key=lambda mark: mark.at_ns):
            runs[mark.attempt_id].append(mark)
        return runs

    @functools.cached_property
    def audited(self) -> dict[tuple[bytes, int], list[AuditRecord]]:
        """What operators did to jobs, by job and generation."""
        audited: dict[tuple[bytes, int], list[AuditRecord]] = collections.defaultdict(list)
        for record in self.audit:
            if record.job_id is not None and record.generation is not None:
                audited[record.job_id, record.generation].append(record)
        return audited

    def attempts(self, job: StoredJob, generation: int) -> list[AttemptRecord]:
        return [attempt for attempt in job.record.attempts if attempt.generation == generation]
