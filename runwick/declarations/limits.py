"""What a job declares of when it may run, and by which keys it is unique; and which limits all that comes to.

Here are values alone: keys are taken from jobs where they are dispatched, limits are held by the store.
"""

import datetime
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from runwick.contracts.jobs import JobSettings, Unset
from runwick.contracts.limits import (
    RATES_MAX,
    SCOPES_MAX,
    DeclaredLimits,
    LimitKind,
    PerResource,
    RateNeed,
    RollingWindow,
    RollingWindowPerResource,
    ScopeNeed,
    Selector,
    UniqueWithinWindow,
)
from runwick.declarations.settings import DEFAULT_QUEUE


class JobLimits(NamedTuple):
    """Of one job; None and an empty tuple are no limit."""

    max_concurrent: int | None = None
    per_resource: tuple[PerResource, ...] = ()
    rolling_window: RollingWindow | None = None
    rolling_window_per_resource: tuple[RollingWindowPerResource, ...] = ()
    unique_while_active: Selector | None = None
    unique_within_window: UniqueWithinWindow | None = None


UNLIMITED: Final = JobLimits()

_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


def limits_of(settings: JobSettings) -> JobLimits:
    """What these checked settings limit."""
    given = {name: getattr(settings, name) for name in JobLimits._fields}
    return JobLimits(**{name: value for name, value in given.items() if not isinstance(value, Unset)})


def crowding(settings: JobSettings, queue_limits: Mapping[str, int]) -> Iterator[str]:
    """Say what is too much for one job; the settings need not be right otherwise."""
    limits = limits_of(settings)
    queue = DEFAULT_QUEUE if isinstance(settings.queue, Unset) else settings.queue
    is_capped = isinstance(queue, str) and queue in queue_limits
    scopes = [is_capped, limits.max_concurrent is not None, _length(limits.per_resource)]
    if sum(scopes) > SCOPES_MAX:
        yield f"it needs {sum(scopes)} concurrency limits (queue, type and resources); the limit is {SCOPES_MAX}."
    rates = [limits.rolling_window is not None, _length(limits.rolling_window_per_resource)]
    if sum(rates) > RATES_MAX:
        yield f"it needs {sum(rates)} rate windows; the limit is {RATES_MAX}."


def declared_limits(queue_limits: Mapping[str, int], jobs: Collection[tuple[str, JobLimits]]) -> DeclaredLimits:
    """The limits of these queues, and of these jobs (name, limits) as types; those of resources come with each job."""
    queues = [ScopeNeed(LimitKind.QUEUE, queue, capacity) for queue, capacity in queue_limits.items()]
    types = [
        ScopeNeed(LimitKind.JOB_TYPE, name, limits.max_concurrent)
        for name, limits in jobs
        if limits.max_concurrent is not None
    ]
    rates = [
        RateNeed(LimitKind.JOB_TYPE, name, window.max_executions, window.window // _MILLISECOND)
        for name, limits in jobs
        if (window := limits.rolling_window) is not None
    ]
    return DeclaredLimits(tuple(sorted([*queues, *types])), tuple(sorted(rates)))


def _length(value: object) -> int:
    return len(value) if isinstance(value, tuple) else 0
