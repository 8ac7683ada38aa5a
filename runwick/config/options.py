"""Every option, one table per options class: unit, default, bounds and the number of the rule that keeps them.

The values are frozen and never adjusted; `runwick.config.check` says everything that is wrong with them. A job's
settings are layers (`JobDefaults`, declaration, `configure_job`), where a setting that was not given says nothing;
their defaults are the library's `JobPolicy`.
"""

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Final

from runwick.config.bounds import Option, bytes_option, count_option, duration_option, refusals, timing_option
from runwick.config.durations import MILLISECOND
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.jobs import JobSettings
from runwick.contracts.policies import EXECUTIONS_MAX

BEATS_PER_LEASE: Final = 4
BEATS_TO_DEADLINE: Final = 2.5
"""An attempt's local deadline, in beats after the start of the last confirmed renewal."""

OUTSTANDING_DEFAULT: Final = 16

HEARTBEAT: Final = duration_option("10s", "10min")


Timing = Annotated[timedelta, timing_option()]
Jitter = Annotated[timedelta, timing_option("0s")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How a worker keeps its leases, waits, recovers and stops. Most applications never touch these.

    The timings are tied together (`runwick.config.timings`): who changes one scales the related ones with it, or
    takes `from_heartbeat`.
    """

    lease_duration: Timing = timedelta(seconds=60)
    """How long a claim lasts before it must be renewed."""
    lease_safety_margin: Timing = timedelta(seconds=10)
    """The worker treats a lease as over this much before the store does."""
    renewal_interval: Timing = timedelta(seconds=15)
    """Leases are renewed this often…"""
    renewal_jitter: Jitter = timedelta(seconds=3)
    """…give or take this much."""
    lease_watchdog_interval: Annotated[timedelta, timing_option(maximum="1s", bound_rule="V-06")] = timedelta(seconds=1)
    """How often local deadlines are compared with the clock."""
    scheduler_allowance: Timing = timedelta(seconds=2)
    """How late a timer may fire on a busy host."""

    control_request_timeout: Timing = timedelta(seconds=5)
    """Longest wait for one claim, renewal or settlement."""
    control_retry_initial_backoff: Timing = timedelta(milliseconds=100)
    """Pause before such a call is repeated; grows up to…"""
    control_retry_max_backoff: Timing = timedelta(seconds=1)
    """…this."""
    minimum_invocation_margin: Timing = timedelta(seconds=15)
    """A handler is not started with less usable lease left than this."""
    claim_resolution_budget: Timing = timedelta(seconds=15)
    """A claim whose answer was lost is asked for again: what it took is run if the answer comes within this time, and
    otherwise given back."""
    begin_resolution_budget: Timing = timedelta(seconds=15)
    """How long a begin whose answer was lost is asked for again."""
    completion_resolution_budget: Timing = timedelta(seconds=30)
    """How long a settlement is repeated before that is reported as an error; it is repeated until it lands."""
    recovery_scan_interval: Timing = timedelta(seconds=5)
    """How often attempts of dead workers are looked for…"""
    recovery_scan_jitter: Jitter = timedelta(seconds=1)
    """…give or take this much."""
    safety_poll_interval: Annotated[timedelta, timing_option(minimum="50ms", maximum="5min", bound_rule="V-12")] = (
        timedelta(seconds=1)
    )
    """The longest idle sleep, the pause after a claim that failed, and, up to 0.9 s, how often the store is asked for
    cancels while anything is held."""

    cancellation_grace: Timing = timedelta(seconds=10)
    """How long a run that is asked to stop (cancelled, or over its time limit) may take; then it is killed where that
    is possible."""
    cleanup_budget: Timing = timedelta(seconds=10)
    """How long the closing of its providers may take after that."""

    shutdown_budget: Timing = timedelta(seconds=25)
    """Longest stop, from the signal on; the three parts must fit in it."""
    shutdown_drain: Timing = timedelta(seconds=15)
    """First part: handlers go on, nothing new is claimed."""
    shutdown_cancellation: Timing = timedelta(seconds=5)
    """Second part: handlers are asked to stop, then stopped."""
    shutdown_finalization: Timing = timedelta(seconds=5)
    """Third part: what ended is settled."""

    record_resource_usage: Annotated[bool, Option("switch")] = True
    """Whether the cost of every attempt is measured and stored with it."""
    max_outstanding_attempts: Annotated[int | None, count_option(1, optional=True)] = None
    """Most attempts that may run at once; the pools' sizes must add up to no more. None means 16, or the number of
    executors where there are more."""

    @classmethod
    def from_heartbeat(cls, beat: timedelta) -> "WorkerOptions":
        """Set the whole clock by one figure, 10 s to 10 min: leases are renewed every `beat`, give or take a tenth.

        A lease is 4 beats, and an attempt's local deadline is 2.5 beats after the start of the last confirmed
        renewal; recovery looks once per lease. All other timings keep their defaults, which fit every such beat:
        the slowest renewal, 1.1 beats + 13 s, is over within 2.5 beats from 9.3 s on.

        Raises:
            ConfigurationError: `beat` is not a whole number of milliseconds from 10 s to 10 min (code
                ``invalid_timing``).
        """
        problems = [Problem("invalid_timing", "heartbeat", text) for text in refusals("heartbeat", beat, HEARTBEAT)]
        if problems:
            raise ConfigurationError(problems)
        lease = BEATS_PER_LEASE * beat
        usable_lease = BEATS_TO_DEADLINE * beat // MILLISECOND * MILLISECOND
        return cls(
            lease_duration=lease,
            lease_safety_margin=lease - usable_lease,
            renewal_interval=beat,
            renewal_jitter=beat / 10 // MILLISECOND * MILLISECOND,
            recovery_scan_interval=lease,
        )

    def outstanding_max(self, executors: int = 0) -> int:
        """`max_outstanding_attempts`, or its default for a worker with so many executors."""
        return self.max_outstanding_attempts or max(OUTSTANDING_DEFAULT, executors)

    @property
    def usable_lease(self) -> timedelta:
        """How long after the start of a confirmed renewal its attempts may run: the local deadline."""
        return self.lease_duration - self.lease_safety_margin


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """How `runwick-supervise` keeps its executors. Memory is what an executor has beyond what it was forked with."""

    memory_soft: Annotated[int | None, bytes_option("1MiB", "1TiB", optional=True)] = None
    """An executor that has grown by more is replaced when its attempt has ended."""
    memory_hard: Annotated[int | None, bytes_option("1MiB", "1TiB", optional=True)] = None
    """One that has grown by more is killed; its attempt ends as crashed, ``memory_limit_exceeded``."""
    recycle_attempts: Annotated[int | None, count_option(1, 1_000_000_000, optional=True)] = None
    """An executor is replaced after so many attempts."""
    recycle_age: Annotated[timedelta | None, duration_option("1s", "8760h", optional=True)] = None
    """An executor is replaced when it is so old."""
    oom_score_adj: Annotated[int, count_option(0, 1_000)] = 500
    """How much sooner the kernel kills an executor than others when memory runs out; never lowered."""
    nice: Annotated[int, count_option(0, 19)] = 0
    """How far executors, and what they start, step back for other processes that want a core; on top of the
    supervisor's own."""
    pin: Annotated[bool, Option("switch")] = False
    """Whether each executor, with what it starts, keeps to one core: the usable ones in turn, by its number."""
    record_allocations: Annotated[bool, Option("switch")] = True
    """Whether bytes and blocks allocated are counted, where the compiled part was built."""
    compiled_part: Annotated[bool, Option("switch")] = True
    """Whether the compiled part is used at all."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SqliteOptions:
    """How this process works with a SQLite file."""

    writer_busy_timeout: Annotated[timedelta, duration_option("100ms", "30s")] = timedelta(seconds=2)
    """How long a write waits for another process to let go of the file's write lock."""
    reader_threads: Annotated[int, count_option(1, 8)] = 2
    """Threads for calls that only read, each with a connection of its own."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PostgresOptions:
    """How this process works with PostgreSQL."""

    request_timeout: Annotated[timedelta, duration_option("100ms", "1min")] = timedelta(seconds=5)
    """How long one call waits for its connection and for its answer. Then its connection is dropped, and whether it was
    applied is unknown."""
    allow_unsafe_durability: Annotated[bool, Option("switch")] = False
    """Work although the server can lose what it confirmed (``synchronous_commit`` or ``fsync`` is off). Receipts then
    say ``postgres.unsafe``."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RedisOptions:
    """How this process works with Redis."""

    command_timeout: Annotated[timedelta, duration_option("100ms", "1min")] = timedelta(seconds=5)
    """How long one call waits for its connection and for its answer. Then its connection is dropped, and whether it was
    applied is unknown."""
    profile_recheck_interval: Annotated[timedelta, duration_option("5s", "5min")] = timedelta(seconds=30)
    """How often the server is looked at while the store is in use: whether it still keeps what it confirms."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """The options of every kind of store; the URL decides which of them matter."""

    sqlite: SqliteOptions = SqliteOptions()
    postgres: PostgresOptions = PostgresOptions()
    redis: RedisOptions = RedisOptions()
    concurrent_calls: int = 8
    """Calls besides a worker's own that may be under way at once: `ProducerOptions.max_concurrent_calls`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProducerOptions:
    """How much one process dispatches at once, and how long a dispatch is good for."""

    max_concurrent_calls: Annotated[int, count_option(1, 1_000)] = 8
    """Dispatch calls under way at once; a batch is one. On PostgreSQL and Redis each may need a connection."""
    max_waiting_operations: Annotated[int, count_option(0, 100_000)] = 64
    """Callers that may wait for their turn; one more fails at once with ``local_capacity_exceeded``."""
    admission_wait: Annotated[timedelta, duration_option("0s", "1min")] = timedelta(seconds=1)
    """How long a caller waits for its turn."""
    command_lifetime: Annotated[timedelta, duration_option("1s", "5min")] = timedelta(minutes=5)
    """How long after it was prepared a dispatch can be applied."""


class JobDefaults(JobSettings, frozen=True, kw_only=True):
    """The application's own defaults for its jobs: above the library's, below each job's declaration."""

    @classmethod
    def web_requests(cls) -> "JobDefaults":
        """For work that web requests hand over (mail, webhooks, indexing): patient retries, a limit on every run.

        5 executions; 30 s after the first failure, doubling to 1 h; an execution is stopped after 600 s; of an error
        only type and message are kept.
        """
        return cls(
            max_executions=5,
            retry_delay=(timedelta(seconds=30), timedelta(hours=1)),
            execution_timeout=timedelta(seconds=600),
            error_detail="message",
        )


_DELAY: Final = duration_option(maximum="24h")

JOB_SETTINGS: Final[Mapping[str, Option]] = {
    "max_executions": count_option(1, EXECUTIONS_MAX),
    "execution_timeout": duration_option(maximum="720h", optional=True),
    "retry_delay": _DELAY,
    "max_unstarted": count_option(1, 100),
    "unstarted_delay": _DELAY,
    "max_crashes": count_option(1, 100),
}
"""Bounds of how often and how long a job runs; a delay's hold for both of its ends. `JobPolicy` has the defaults. What
limits and keys may be is in `runwick.config.limits`."""
