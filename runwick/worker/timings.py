"""The worker's clock: option values and the engine's fixed numbers, in the units the loops use."""

import datetime
from typing import Final

import msgspec

from runwick.config.options import WorkerOptions

CLAIM_MAX: Final = 128
"""Most attempts in one claim, and most settlements in one batch (one round trip for all)."""
BATCH_MAX_BYTES: Final = 4 * 1024 * 1024
"""A claim's payloads or a batch's results end at this size."""
IDLE_SLEEP_MIN_S: Final = 0.05
"""The shortest sleep after an empty claim."""
PROMISES_WITHIN_S: Final = 10.0
"""Jobs that a rate window promised a place so soon are claimed at that very moment; later ones are found by polling,
which costs such long windows next to nothing."""
IDLE_JITTER_S: Final = 0.1
"""Spread that keeps idle workers from claiming in lockstep."""
LINGER_S: Final = 0.02
"""How long a completion waits for company, while attempts shorter than this are running."""
WRITE_REPEAT_FIRST_S: Final = 1.0
WRITE_REPEAT_MAX_S: Final = 30.0
WRITE_REPEAT_SPREAD: Final = 0.25
"""A settlement that could not be written is repeated after 1 s, doubling to 30 s, each ± a quarter."""
FAILED_ROUND_PAUSE_S: Final = 1.0
"""The pause of a loop whose round raised; a failed claim backs off this long."""
RECOVERY_LIMIT: Final = 128
"""Most leases closed by one recovery transaction; a full one is followed at once by the next."""
TEND_LIMIT: Final = 100
"""Most limits that one call of the recovery pass looks at."""
JOIN_MIN: Final = 8
"""A claim goes along with a settlement for no fewer jobs than this; fewer are not worth its statements."""
HELD_MAX: Final = 512
"""Most attempts that a worker holds beyond those that can run at once: handed ahead, or waiting to be settled."""
PAYLOADS_MAX_BYTES: Final = 16 * 1024 * 1024
"""Most bytes of payloads that a worker holds."""
POLL_MAX_S: Final = 0.9
"""While anything is held, the store is asked at least this often for cancels, so that one arrives within a second."""
HEALTH_INTERVAL_S: Final = 1.0
"""How often a worker looks whether its health has changed."""
REQUEST_PAUSE_S: Final = 0.25
"""However often the store hints at requests, it is asked for them no sooner than this after the last call."""
MARK_AGE_MS: Final = 1_000
"""A run is told to have begun when it is so old: shorter ones tell it with their settlement."""
ACTIVITY_MAX: Final = 200
"""Of so many executors a worker tells what they do; those that run something come first."""
STACKS_MAX: Final = 16
"""Most stacks in one call."""
LOCKED_PAUSE_FIRST_S: Final = 0.05
LOCKED_PAUSE_MAX_S: Final = 1.0
"""What is written for a row that somebody's transaction holds is tried again after 50 ms, doubling to 1 s."""


class Timings(msgspec.Struct, frozen=True):
    """Seconds and milliseconds of the options."""

    lease_ms: int
    attempt_deadline_s: float
    """From the start of the last confirmed renewal to where the lease counts as lost here."""
    renewal_interval_s: float
    renewal_jitter_s: float
    watchdog_s: float
    scan_interval_s: float
    scan_jitter_s: float
    safety_poll_s: float
    request_poll_s: float
    """How often the store is asked for cancels while anything is held."""
    cancellation_grace_s: float
    lost_grace_s: float
    """How long a run whose lease is over by the local clock may take to stop; it ends well before the store's."""
    control_timeout_s: float
    retry_initial_s: float
    retry_max_s: float
    invocation_margin_s: float
    claim_budget_s: float
    begin_budget_s: float
    completion_budget_s: float
    drain_s: float
    cancellation_s: float
    finalization_s: float
    budget_s: float


def timings_of(options: WorkerOptions) -> Timings:
    """Translate checked options."""
    return Timings(
        lease_ms=_ms(options.lease_duration),
        attempt_deadline_s=options.usable_lease.total_seconds(),
        renewal_interval_s=options.renewal_interval.total_seconds(),
        renewal_jitter_s=options.renewal_jitter.total_seconds(),
        watchdog_s=options.lease_watchdog_interval.total_seconds(),
        scan_interval_s=options.recovery_scan_interval.total_seconds(),
        scan_jitter_s=options.recovery_scan_jitter.total_seconds(),
        safety_poll_s=options.safety_poll_interval.total_seconds(),
        request_poll_s=min(options.safety_poll_interval.total_seconds(), POLL_MAX_S),
        cancellation_grace_s=options.cancellation_grace.total_seconds(),
        lost_grace_s=options.lease_safety_margin.total_seconds() / 4,
        control_timeout_s=options.control_request_timeout.total_seconds(),
        retry_initial_s=options.control_retry_initial_backoff.total_seconds(),
        retry_max_s=options.control_retry_max_backoff.total_seconds(),
        invocation_margin_s=options.minimum_invocation_margin.total_seconds(),
        claim_budget_s=options.claim_resolution_budget.total_seconds(),
        begin_budget_s=options.begin_resolution_budget.total_seconds(),
        completion_budget_s=options.completion_resolution_budget.total_seconds(),
        drain_s=options.shutdown_drain.total_seconds(),
        cancellation_s=options.shutdown_cancellation.total_seconds(),
        finalization_s=options.shutdown_finalization.total_seconds(),
        budget_s=options.shutdown_budget.total_seconds(),
    )


def _ms(duration: datetime.timedelta) -> int:
    return duration // datetime.timedelta(milliseconds=1)
