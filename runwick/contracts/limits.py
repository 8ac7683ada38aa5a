"""Limits across all workers: how many run at once (scopes) and how many start per window of time (rate windows).

A job *needs* limits. What it declares is written here; what stands in the store is a limit's *record*. A job that meets
a full limit waits in that limit's *line*, outside the lanes, until it is called in.
"""

import datetime
import enum
from collections.abc import Callable
from typing import Any, Final

import msgspec

SCOPES_MAX: Final = 8
"""Scopes of one job: its queue's, its type's and its resources'."""
RATES_MAX: Final = 8
"""Rate windows of one job."""
KEY_MAX_BYTES: Final = 512
"""A key's length as UTF-8."""
CAPACITY_MAX: Final = 1_000_000
RATE_MAX: Final = 100_000
"""Runs that one window may let begin."""
RATE_WINDOW_MIN_MS: Final = 1_000
RATE_WINDOW_MAX_MS: Final = 86_400_000
DEFER_MIN_MS: Final = 250
"""A job that a window refuses is due again that much later at the earliest…"""
DEFER_JITTER_MS: Final = 100
"""…plus up to so much: the last byte of its id modulo 101."""
PASSED_MAX: Final = 256
"""Jobs that one claim call moves aside at most: into lines, or to a later due time."""
CALLED_MAX: Final = 128
"""Jobs that one act calls out of lines at most; the rest is left to the next one or to `tend`."""
RANKS: Final = ("high", "medium", "high", "low", "high", "medium", "high", "high", "medium", "high")
"""Which priority of a line is called with the n-th call, modulo 10: 6 : 3 : 1, as lanes share. A rank that is empty
leaves its turn to the highest that is not."""


class LimitKind(enum.StrEnum):
    """What a limit is about."""

    QUEUE = "queue"
    JOB_TYPE = "job-type"
    RESOURCE = "resource"


Selector = Callable[[Any], str]
"""Gives the key of a job's record: 1 to 512 bytes of UTF-8 without control characters, compared exactly. Called once,
when the job is dispatched; it depends on nothing but the record."""


class PerResource(msgspec.Struct, frozen=True):
    """At most `capacity` jobs with the same key run at once, of all job types that use the key."""

    selector: Selector
    capacity: int
    """From 1. With 1 each run gets a fencing token."""


class RollingWindow(msgspec.Struct, frozen=True):
    """At most `max_executions` runs of the job type begin within any `window`."""

    max_executions: int
    """1 to 100,000."""
    window: datetime.timedelta
    """Whole milliseconds, 1 second to 24 hours."""


class RollingWindowPerResource(msgspec.Struct, frozen=True):
    """As `RollingWindow`, for the runs with one key. One key may have windows of several lengths."""

    selector: Selector
    max_executions: int
    window: datetime.timedelta


class UniqueWithinWindow(msgspec.Struct, frozen=True):
    """For the length of `window` after the first dispatch with the key that `selector` gives, the same request answers
    the same job, even when that has ended. The window does not slide."""

    selector: Selector
    window: datetime.timedelta
    """Whole milliseconds, up to 3,650 days."""


class ScopeNeed(msgspec.Struct, frozen=True, order=True):
    """One scope that a job must hold while it runs, with the capacity it is created with."""

    kind: LimitKind
    key: str
    """The queue, the job's name, or what the selector gave."""
    capacity: int


class RateNeed(msgspec.Struct, frozen=True, order=True):
    """One rate window that a run is charged to, with the limit it is created with."""

    kind: LimitKind
    """`LimitKind.JOB_TYPE` or `LimitKind.RESOURCE`."""
    key: str
    max_executions: int
    window_ms: int


class DeclaredLimits(msgspec.Struct, frozen=True):
    """The limits of queues and job types that an application declares; those of resources come with each job."""

    scopes: tuple[ScopeNeed, ...] = ()
    rates: tuple[RateNeed, ...] = ()


class Fence(msgspec.Struct, frozen=True):
    """The fencing token of a run that holds a resource of capacity 1: it rises with every holder of that resource."""

    scope: str
    """The resource's key."""
    value: int
    """From 1."""


class Drift(msgspec.Struct, frozen=True, order=True):
    """A limit whose value in the store is not the declared one. The store's holds."""

    kind: LimitKind
    key: str
    stored: str
    """``capacity 5``, or ``100 per 60 s``."""
    declared: str
    """``no limit`` where there is none in the code any more; that of the store goes on."""


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One queue that the store knows."""

    queue: str
    paused: bool
    revision: int
    """Raised by each pause and resume; 0 for a queue that nobody ever paused."""
    since_ms: int | None
    """Since when it is paused."""


class ScopeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One scope as it stands."""

    id: bytes
    kind: LimitKind
    key: str
    capacity: int
    in_use: int
    """More than `capacity` after that was lowered."""
    waiting: bool
    """Whether jobs wait in its line."""
    revision: int
    """From 1; raised by each change of the capacity."""
    fence: int
    """The last token given; 0 where none was."""


class RateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rate window as it stands."""

    id: bytes
    kind: LimitKind
    key: str
    max_executions: int
    window_ms: int
    granted: int
    """Runs authorised so far, all its life."""
    in_window: int
    """Of them, those within the window that ends now."""
    waiting: bool


class Tended(msgspec.Struct, frozen=True):
    """What one pass over the limits did."""

    called: int
    """Jobs called out of lines that a crash had left there."""
    mended: int
    """Scopes whose holds and count differed. More than 0 is a fault."""
    after: bytes | None
    """Where to go on; None when the pass is over."""
