"""Why a job waits, as its application sees it: every reason as data and as a sentence for people."""

import datetime
from typing import Final

import msgspec

from runwick.contracts.identity import id_text
from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.contracts.states import JobState
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason, WaitReport
from runwick.management.capacity import RateView, ScopeView

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TEXTS: Final = {
    WaitCode.NOT_DUE: "It is not due yet: its start, or its next try, is at {until}.",
    WaitCode.EXPIRED: "It had not begun by its expiry; the next pass of a worker closes it as expired.",
    WaitCode.ADMISSION_CLOSED: "The application is drained or maintained: nothing is claimed until that ends.",
    WaitCode.QUEUE_PAUSED: "Its queue is paused: nothing is claimed from it until an operator resumes it.",
    WaitCode.NO_POOL: "No living worker serves its queue.",
    WaitCode.NO_DECODER: "Workers serve its queue, but none of them can decode its name and version.",
}
_ENDED: Final = {
    JobState.SUCCEEDED: "it has succeeded",
    JobState.FAILED: "it has failed",
    JobState.CANCELLED: "it was cancelled",
}
_UNTOLD: Final = (
    "A worker of an older release serves its queue and does not tell what it decodes; none of the others can."
)


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


def reason_text(reason: WaitReason) -> str:
    """A reason in one sentence."""
    if reason.code is WaitCode.NEXT:
        return _next(reason.ahead or 0)
    if isinstance(reason.limit, ScopeRecord):
        return f"{_scope(reason.limit)}; {_place(reason)}."
    if isinstance(reason.limit, RateRecord):
        return f"{_rate(reason.limit)}; {_place(reason)}."
    if reason.code is WaitCode.NO_DECODER and reason.untold:
        return _UNTOLD
    until = "a time that is not known" if reason.until_ms is None else _shown(reason.until_ms)
    return _TEXTS[reason.code].format(until=until)


def _limit(limit: ScopeRecord | RateRecord | None) -> ScopeView | RateView | None:
    if isinstance(limit, ScopeRecord):
        return ScopeView.of(limit)
    return None if limit is None else RateView.of(limit)


def _next(ahead: int) -> str:
    if not ahead:
        return "Nothing holds it: it is the next of its lane."
    return f"Nothing holds it but the jobs before it in its lane, {_counted(ahead)}."


def _scope(scope: ScopeRecord) -> str:
    return f"The limit of {scope.kind.value} {scope.key} is full, with {scope.in_use} of {scope.capacity} running"


def _rate(rate: RateRecord) -> str:
    return (
        f"The rate limit of {rate.kind.value} {rate.key} is full, with {rate.in_window} of {rate.max_executions} "
        f"begun within {rate.window_ms / 1000:g} s"
    )


def _place(reason: WaitReason) -> str:
    """Where it stands at its full limit."""
    if reason.until_ms is not None:
        return f"it has been promised a place at {_shown(reason.until_ms)}"
    if reason.ahead is not None:
        if not reason.ahead:
            return "it is the first of its priority in the limit's line"
        return f"it waits in the limit's line, behind {_counted(reason.ahead)}"
    return "the next claim will see that"


def _counted(ahead: int) -> str:
    if ahead >= AHEAD_MAX:
        return f"{AHEAD_MAX:,} or more"
    return f"{ahead:,}"


def _shown(at_ms: int) -> str:
    return _at(at_ms).isoformat(timespec="milliseconds")


def _at(at_ms: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=at_ms)


def _datetime(at_ms: int | None) -> datetime.datetime | None:
    return None if at_ms is None else _at(at_ms)
