"""Why a job waits."""

import enum
from collections.abc import Sequence

import msgspec

from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.contracts.states import JobState

AHEAD_MAX = 1_000
"""Jobs in front are counted up to here."""


class WaitCode(enum.StrEnum):
    """One reason. Several may hold at once."""

    NOT_DUE = "not_due"
    """Its start time, or its next try, is yet to come."""
    EXPIRED = "expired"
    """It had not begun by its expiry; the next pass closes it."""
    ADMISSION_CLOSED = "admission_closed"
    """The application is drained or maintained: nothing is claimed."""
    QUEUE_PAUSED = "queue_paused"
    NO_POOL = "no_pool"
    """No living worker serves its queue."""
    NO_DECODER = "no_decoder"
    """Of the workers that serve its queue none decodes its name and version."""
    SCOPE_FULL = "scope_full"
    RATE_FULL = "rate_full"
    NEXT = "next"
    """Nothing but the jobs in front of it."""


class WaitReason(msgspec.Struct, frozen=True, kw_only=True):
    """One reason with what is known of it."""

    code: WaitCode
    until_ms: int | None = None
    """Until when it holds, by the store's clock, where that is known."""
    limit: ScopeRecord | RateRecord | None = None
    """Which one is full."""
    ahead: int | None = None
    """Jobs in front of it, in that limit's line or in its lane; `AHEAD_MAX` means so many or more."""
    untold: bool = False
    """For `WaitCode.NO_DECODER`: some worker of an older release serves the queue and does not tell what it decodes."""


class WaitReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one job, all of one moment."""

    job_id: bytes
    state: JobState
    at_ms: int
    """The store's time of the answer."""
    reasons: Sequence[WaitReason]
    """Empty for a job that does not wait."""
