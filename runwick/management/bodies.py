"""What operators are told, as the HTTP API, the command line and the dashboard all show it: JSON in camelCase, ids as
text, times as ISO 8601 in UTC with milliseconds, durations in whole milliseconds or microseconds as their names say.

Nothing here is private but `RevealBody`.
"""

from typing import Any

import msgspec

from runwick.contracts.states import JobState, Priority
from runwick.contracts.usage import Amount


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The form of all of them. Members that are null are there, so that a reader sees what there could be."""


class UsageBody(Body, frozen=True, kw_only=True):
    """What an attempt cost; the meaning and source of each figure stand at `runwick.contracts.usage.Usage`."""

    wall_us: Amount | None
    cpu_user_us: Amount | None
    cpu_system_us: Amount | None
    cpu_children_us: Amount | None
    rss_peak_bytes: Amount | None
    rss_end_bytes: Amount | None
    faults_minor: Amount | None
    faults_major: Amount | None
    switches_voluntary: Amount | None
    switches_involuntary: Amount | None
    allocated_bytes: Amount | None
    allocated_blocks: Amount | None
    allocations_by: str | None


class DeathBody(Body, frozen=True, kw_only=True):
    """How an executor died: the members of `runwick.contracts.outcomes.Death`."""

    cause: str
    signal: int | None
    status: int | None
    phase: str | None
    text: str
    """In words: ``killed by SIGSEGV in handle``."""


class JobBody(Body, frozen=True, kw_only=True):
    """One job of a list."""

    job_id: str
    name: str
    version: int
    queue: str
    priority: Priority
    state: JobState
    handed_over: bool
    """It is with a worker, but has not begun as far as is known."""
    code: str | None
    generation: int
    revision: int
    executions: int
    max_executions: int
    created_at: str
    due_at: str | None
    begun_at: str | None
    ended_at: str | None
    cancel_requested_at: str | None
    tenant: str | None
    payload_bytes: int


class AttemptBody(Body, frozen=True, kw_only=True):
    """One attempt that has ended."""

    attempt_id: str
    generation: int
    number: int
    outcome: str
    code: str | None
    begun_at: str | None
    ended_at: str
    worker: str | None
    delay_ms: int | None
    """How long the job was made to wait after it."""
    usage: UsageBody | None
    death: DeathBody | None
    has_error: bool
    """There is something to reveal; so for the next."""
    has_black_box: bool


class RunningBody(Body, frozen=True, kw_only=True):
    """What the attempt under way did when its worker last told."""

    attempt_id: str
    worker: str
    worker_alive: bool | None
    """False: its worker died or left, and what stands here was its last word; another worker takes the job up when the
    lease has run out."""
    host: str | None
    """Of its worker; null, like the rest, where the worker has not told. Host and process are null also for a caller
    who may not look at workers."""
    process: int | None
    executor: int | None
    pool: str | None
    phase: str | None
    begun_at: str | None
    cpu_us: int | None
    rss_bytes: int | None
    told_at: str | None


class JobDetailBody(JobBody, frozen=True, kw_only=True):
    """One job with its history."""

    expires_at: str | None
    has_result: bool
    attempts: tuple[AttemptBody, ...]
    running: RunningBody | None


class JobListBody(Body, frozen=True, kw_only=True):
    """Some jobs, the latest first."""

    jobs: tuple[JobBody, ...]
    cursor: str | None
    """What to go on with; null when there are no more. A page may be empty although there are more."""
    as_of: str


class LimitBody(Body, frozen=True, kw_only=True):
    """A scope or rate window that is full."""

    kind: str
    key: str
    capacity: int | None
    in_use: int | None
    max_executions: int | None
    window_ms: int | None
    in_window: int | None


class WaitReasonBody(Body, frozen=True, kw_only=True):
    code: str
    text: str
    until: str | None
    limit: LimitBody | None
    ahead: int | None


class WaitBody(Body, frozen=True, kw_only=True):
    """Why a job waits."""

    job_id: str
    state: JobState
    reasons: tuple[WaitReasonBody, ...]
    """None for a job that does not wait."""
    as_of: str


class RevealBody(Body, frozen=True, kw_only=True):
    """What was revealed; all null where there is no such thing any more."""

    job_id: str
    attempt_id: str | None
    what: str
    json: Any = None
    """Payload or result, as stored (`msgspec.Raw`): numbers stay exact."""
    type: str | None = None
    """Of an error, like the next two."""
    message: str | None = None
    text: str | None = None
    """A traceback, or a stack; of a payload or result that is damaged and no JSON, what is there."""
    log: tuple[str, ...] | None = None
    """Of a black box: its last lines."""
    replayed: bool = False
    command_id: str = ""


class ControlBody(Body, frozen=True, kw_only=True):
    """What became of one job that a control was about."""

    succeeded: bool
    code: str | None
    job_id: str
    state: JobState | None
    generation: int | None
    revision: int | None
    cancel_requested: bool
    attempt_id: str | None
    """Of a look: whose stack comes."""
    replayed: bool
    command_id: str


class SteerBody(Body, frozen=True, kw_only=True):
    """What became of one queue or scope that was to be changed."""

    succeeded: bool
    code: str | None
    revision: int | None
    before: str | None
    after: str | None
    replayed: bool
    command_id: str


class DispatchBody(Body, frozen=True, kw_only=True):
    """The receipt of a job that was created by hand."""

    job_id: str | None
    """Null where a uniqueness key found a job that the caller may not see."""
    disposition: str
    """``created``, or ``reused`` where a uniqueness key found a job that was there."""
    replayed: bool
    command_id: str


class QueueBody(Body, frozen=True, kw_only=True):
    queue: str
    declared: bool
    paused: bool
    paused_since: str | None
    revision: int
    due: int
    """10,000 means so many or more; so for the next three."""
    later: int
    blocked: int
    leased: int
    oldest_due_at: str | None
    """Of those that are due; what a limit holds back is told by `blocked` alone."""


class QueueListBody(Body, frozen=True, kw_only=True):
    queues: tuple[QueueBody, ...]
    as_of: str


class ExecutorBody(Body, frozen=True, kw_only=True):
    number: int
    pool: str
    phase: str
    process: int | None
    job_id: str | None
    """Null also where the caller may not see that job; so for the name."""
    attempt_id: str | None
    name: str | None
    begun_at: str | None
    cpu_us: int | None
    rss_bytes: int | None
    attempts: int
    restarts: int
    restarted_for: str | None


class WorkerBody(Body, frozen=True, kw_only=True):
    worker: str
    host: str
    process: int
    queues: tuple[str, ...]
    alive: bool
    seen_at: str
    departed_at: str | None
    told_at: str | None
    executors: tuple[ExecutorBody, ...]


class WorkerListBody(Body, frozen=True, kw_only=True):
    workers: tuple[WorkerBody, ...]
    as_of: str


class ScopeBody(Body, frozen=True, kw_only=True):
    id: str
    kind: str
    key: str
    capacity: int
    in_use: int
    waiting: bool
    revision: int
    fence: int


class ScopeListBody(Body, frozen=True, kw_only=True):
    scopes: tuple[ScopeBody, ...]
    cursor: str | None
    as_of: str


class RateBody(Body, frozen=True, kw_only=True):
    id: str
    kind: str
    key: str
    max_executions: int
    window_ms: int
    granted: int
    in_window: int
    waiting: bool


class RateListBody(Body, frozen=True, kw_only=True):
    rates: tuple[RateBody, ...]
    cursor: str | None
    as_of: str


class EventBody(Body, frozen=True, kw_only=True):
    cursor: str
    what: str
    at: str
    job_id: str
    name: str
    queue: str
    priority: Priority
    generation: int
    number: int | None
    state: str | None
    code: str | None
    attempt_id: str | None
    command_id: str | None


class EventListBody(Body, frozen=True, kw_only=True):
    events: tuple[EventBody, ...]
    cursor: str
    more: bool


class AuditBody(Body, frozen=True, kw_only=True):
    at: str
    actor: str
    actor_display: str | None
    actor_scheme: str | None
    action: str
    target: str | None
    job_id: str | None
    generation: int | None
    before: str | None
    after: str | None
    reason: str | None
    command_id: str | None


class AuditListBody(Body, frozen=True, kw_only=True):
    records: tuple[AuditBody, ...]
    cursor: str | None
    as_of: str


class DistributionBody(Body, frozen=True, kw_only=True):
    """How a figure lies over the runs of one type: its values at these shares of them, and how many were measured."""

    count: int
    minimum: int
    p25: int
    p50: int
    p75: int
    p90: int
    p99: int
    maximum: int


class TypeBody(Body, frozen=True, kw_only=True):
    """One job type, with figures of its last runs."""

    name: str
    runs: int
    """On which the figures rest."""
    failed: int
    """Of them, those that failed: neither what somebody cancelled nor what a stopping worker interrupted."""
    codes: dict[str, int]
    """How often they failed with each code, the most frequent first."""
    last_at: str | None
    wall_us: DistributionBody | None
    cpu_us: DistributionBody | None
    rss_peak_bytes: DistributionBody | None
    allocated_bytes: DistributionBody | None


class PointBody(Body, frozen=True, kw_only=True):
    """One run, for a plot or a short list."""

    job_id: str
    generation: int
    number: int
    name: str
    queue: str
    tenant: str | None
    ended_at: str
    outcome: str
    code: str | None
    death: str | None
    """The cause, where its executor died."""
    payload_bytes: int
    wall_us: int | None
    cpu_us: int | None
    rss_peak_bytes: int | None
    allocated_bytes: int | None


class AdviceBody(Body, frozen=True, kw_only=True):
    """What the figures suggest, with the rule that says so."""

    code: str
    text: str
    settings: dict[str, str] = {}
    """Values for options, as an environment variable of that name in capitals, or the command line, takes them."""


class LimitingBody(Body, frozen=True, kw_only=True):
    """What keeps more jobs from being done now."""

    factor: str
    """``handlers``, ``waiting_handlers``, ``machine``, ``supervisor``, ``store``, ``supervisor_or_store``, ``limits``,
    ``paused``, ``unserved``, ``admission``, ``no_worker``, ``not_due`` or ``no_jobs``."""
    text: str
    facts: tuple[str, ...]
    """What was seen, and what is not recorded; a sentence each."""


class TypeDetailBody(TypeBody, frozen=True, kw_only=True):
    points: tuple[PointBody, ...]
    """The latest first."""
    advice: tuple[AdviceBody, ...]
    limiting: LimitingBody | None = None
    """Of the whole application, whatever its types; None for who may not see all of it."""
    as_of: str


class TypeListBody(Body, frozen=True, kw_only=True):
    types: tuple[TypeBody, ...]
    as_of: str


class TroubleBody(Body, frozen=True, kw_only=True):
    """Something that is wrong now, the worst first."""

    code: str
    """``queue_behind``, ``executors_dying``, ``failures_rising``, ``no_worker``, ``queue_paused``…"""
    severity: str
    """``error`` or ``warning``."""
    text: str
    queue: str | None = None
    name: str | None = None
    worker: str | None = None


class TrendBody(Body, frozen=True, kw_only=True):
    """A figure over time, oldest first: one value per `step_ms`, the last of them ending at `as_of`."""

    step_ms: int
    values: tuple[int, ...]
    is_sampled: bool
    """More ended than was read: the older values are too small."""


class OverviewBody(Body, frozen=True, kw_only=True):
    """What is wrong first, then figures."""

    troubles: tuple[TroubleBody, ...]
    due: int
    """10,000 per queue at most; `due_is_capped` says whether."""
    due_is_capped: bool
    later: int
    blocked: int
    running: int
    handed_over: int
    oldest_due_at: str | None
    """Of those that are due; what a limit holds back is told by `blocked` alone."""
    ended: TrendBody
    failed: TrendBody
    cores: float | None
    """Mean number of cores inside handlers over the last `cores_over_ms`: of runs that ended, and of those under way as
    their workers last told. Null where nothing measured it."""
    cores_over_ms: int | None
    """A minute, or less where more runs ended in it than were read."""
    cores_share: float | None
    """`cores` as a share of all executors, one core each, 0 to 1; null also where those are not shown."""
    workers: int | None
    """Null for a caller who may not look at workers; so for the next two."""
    executors: int | None
    executors_busy: int | None
    recent_failures: tuple[PointBody, ...]
    admission: str
    as_of: str


class SettingBody(Body, frozen=True, kw_only=True):
    name: str
    value: str
    source: str


class SettingsBody(Body, frozen=True, kw_only=True):
    application: str
    store: str
    """Without secrets."""
    store_id: str | None
    revision: int | None
    version: str
    admission: str
    capabilities: tuple[str, ...]
    settings: tuple[SettingBody, ...]
    notes: tuple[str, ...]
    as_of: str
