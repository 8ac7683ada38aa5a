"""What the checker judges: everything that was asked, that ran and that stands in the store, as plain data.

Nothing here decides anything. Times in milliseconds are since 1970-01-01 UTC: a client's by its host's clock, the
store's by its own, which in every campaign is the same clock. Marks carry CLOCK_BOOTTIME too, which puts runs in order.
"""

import collections
import functools
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from runwick.contracts.controls import ControlAnswer, JobTarget, SteerReply
from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.history import AuditRecord, JobEvent
from runwick.contracts.identity import id_bytes
from runwick.contracts.limits import Fence, LimitKind, RateNeed, ScopeNeed
from runwick.contracts.policies import JobPolicy
from runwick.contracts.stores import AttemptRecord, JobRecord


class Wanted(msgspec.Struct, frozen=True):
    """One job that a client asked for."""

    operation_id: bytes
    job_id: bytes
    not_before_ms: int = 0
    """A time before which it must not be claimed, by the store's clock."""
    name: str = ""
    """Of the job; keys belong to it."""
    active_key: str | None = None
    window_key: str | None = None
    window_ms: int = 0
    fingerprint: bytes | None = None
    scopes: Sequence[ScopeNeed] = ()
    rates: Sequence[RateNeed] = ()

    @classmethod
    def by(cls, command: Command, at_ms: int) -> "Wanted":
        """What a command asks for."""
        return cls(
            command.operation_id,
            command.job_id,
            at_ms + command.delay_ms if command.delay_ms else 0,
            command.kind.name,
            command.active_key,
            command.window_key,
            command.window_ms or 0,
            command.fingerprint,
            command.scopes,
            command.rates,
        )

    @property
    def keyed(self) -> bool:
        return self.active_key is not None or self.window_key is not None


class Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client was told of one job that it had asked for."""

    job_id: bytes | None
    """The job of its receipt; None: it failed alone."""
    match: DuplicateMatch = DuplicateMatch.NONE
    """By which key that is a job that was there."""
    code: str | None = None
    """Of a failure, like the next."""
    in_the_way: bytes | None = None
    """The job that the conflict named."""

    @classmethod
    def by(cls, answer: Receipt | ItemFailure) -> "Given":
        if isinstance(answer, Receipt):
            return cls(answer.job, answer.duplicate_match)
        other = answer.conflicting_job_id
        return cls(None, code=answer.code, in_the_way=None if other is None else id_bytes(other))


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
    """``dispatch``, ``batch``, or the name of a control or of a steering; of the request alone, like the next four."""
    jobs: Sequence[Wanted] = ()
    command_id: bytes | None = None
    targets: Sequence[JobTarget] = ()
    queue_or_scope: str | None = None
    """What was to be steered, as the audit trail names it."""
    given: Sequence[Given] = ()
    """In the order of what was asked."""
    answers: Sequence[ControlAnswer] = ()
    steered: SteerReply | None = None
    """What became of a queue or a capacity."""
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
    step: Literal["begin", "on", "end", "left", "accepted", "refused"]
    """``left`` is written by a process that the run started; the last two are what a fenced resource answered."""
    pid: int
    born: int
    """The start of the process, in clock ticks since boot: with the pid it names the process for good."""
    at_ns: int
    """CLOCK_BOOTTIME."""
    at_ms: int
    cpu_us: int = 0
    """CPU time of the executor process since its birth."""
    fences: Sequence[Fence] = ()
    """Of the run, at its beginning; at the resource the token that it was shown."""


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


class LimitChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the store's own log of limits and keys, written in the transaction that it tells of. Of one limit,
    and of one job, the lines stand in commit order."""

    what: Literal["capacity", "take", "free", "grant", "promise", "settled", "live", "over"]
    """``capacity``: a scope's, at its creation and with each change. ``take``, ``free``: of a place in a scope.
    ``grant``: of a run by a rate window. ``promise``: a job is to begin when a grant leaves; ``settled``: it came to
    something else. ``live``, ``over``: a generation of a job."""
    limit: bytes | None = None
    job_id: bytes | None = None
    value: int | None = None
    """The capacity; the fencing token taken; the window's time of a grant; the due time promised."""
    at_ms: int = 0
    """By the store's clock."""


class StoredScope(msgspec.Struct, frozen=True, kw_only=True):
    """A scope as it was left."""

    id: bytes
    kind: LimitKind
    key: str
    capacity: int
    in_use: int
    held: int
    """Holds that are there."""
    line: int
    """Jobs in its line."""


class StoredWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A rate window as it was left."""

    id: bytes
    kind: LimitKind
    key: str
    most: int
    window_ms: int
    granted: int
    line: int


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

    application: str
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
    limit_log: Sequence[LimitChange]
    scopes: Sequence[StoredScope]
    windows: Sequence[StoredWindow]
    keys_held: Sequence[bytes]
    """The jobs that hold an active key at the end."""
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
        return [call for call in self.calls if call.asked.targets]

    @functools.cached_property
    def steerings(self) -> list[Call]:
        return [call for call in self.calls if call.asked.queue_or_scope is not None]

    @functools.cached_property
    def wanted(self) -> dict[bytes, Wanted]:
        """By job id, as it was first asked for."""
        first: dict[bytes, Wanted] = {}
        for wanted in (wanted for call in self.dispatches for wanted in call.asked.jobs):
            first.setdefault(wanted.job_id, wanted)
        return first

    @functools.cached_property
    def limited(self) -> frozenset[bytes]:
        """Jobs that may have been made to wait for a rate window."""
        return frozenset(job_id for job_id, wanted in self.wanted.items() if wanted.rates)

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
