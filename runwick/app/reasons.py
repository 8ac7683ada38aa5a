"""Why a job waits, as its application sees it: every reason as data and as a sentence for people."""

import datetime
from typing import Final

import msgspec

from runwick.contracts.identity import id_text
from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.contracts.states import JobState
from runwick.contracts.waiting import WaitCode, WaitReason, WaitReport
from runwick.management.capacity import RateView, ScopeView
from runwick.management.reasons import reason_text

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_ENDED: Final = {
    JobState.SUCCEEDED: "it has succeeded",
    JobState.FAILED: "it has failed",
    JobState.CANCELLED: "it was cancelled",
}


class WaitReasonView(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for which a job waits."""

    code: WaitCode
    text: str
    """A sentence for people."""
    until: datetime.datetime | None
    """Until when it holds, aware, UTC, by the store's clock, where that is known."""
    limit: ScopeView | RateView | None
    """Which one is full."""
    ahead: int | None
    """Jobs in front of it, in that limit's line or in its lane; 1,000 means so many or more."""

    @classmethod
    def of(cls, reason: WaitReason) -> "WaitReasonView":
        """The view of a store's reason."""
        return cls(
            code=reason.code,
            text=reason_text(reason),
            until=_datetime(reason.until_ms),
            limit=_limit(reason.limit),
            ahead=reason.ahead,
        )


class WaitView(msgspec.Struct, frozen=True, kw_only=True):
    """Why one job waits, all of one moment."""

    job_id: str
    """UUID text."""
    state: JobState
    at: datetime.datetime
    """When this was so, by the store's clock."""
    reasons: tuple[WaitReasonView, ...]
    """Empty for a job that does not wait."""

    @classmethod
    def of(cls, report: WaitReport) -> "WaitView":
        """The view of a store's answer."""
        return cls(
            job_id=id_text(report.job_id),
            state=report.state,
            at=_at(report.at_ms),
            reasons=tuple(map(WaitReasonView.of, report.reasons)),
        )

    @property
    def text(self) -> str:
        """All reasons, one sentence after the other."""
        if not self.reasons:
            return f"It does not wait: {_ENDED.get(self.state, f'it is {self.state.value}')}."
        return " ".join(reason.text for reason in self.reasons)

    def __str__(self) -> str:
        return self.text


def _limit(limit: ScopeRecord | RateRecord | None) -> ScopeView | RateView | None:
    if isinstance(limit, ScopeRecord):
        return ScopeView.of(limit)
    return None if limit is None else RateView.of(limit)


def _at(at_ms: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=at_ms)


def _datetime(at_ms: int | None) -> datetime.datetime | None:
    return None if at_ms is None else _at(at_ms)
