"""Why a job waits, in sentences for people."""

from typing import Final

from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason
from runwick.management.amounts import moment

_TEXTS: Final = {
    WaitCode.NOT_DUE: "It is not due yet: its start, or its next try, is at {until}.",
    WaitCode.EXPIRED: "It had not begun by its expiry; the next pass of a worker closes it as expired.",
    WaitCode.ADMISSION_CLOSED: "The application is drained or maintained: nothing is claimed until that ends.",
    WaitCode.QUEUE_PAUSED: "Its queue is paused: nothing is claimed from it until an operator resumes it.",
    WaitCode.NO_POOL: "No living worker serves its queue.",
    WaitCode.NO_DECODER: "Workers serve its queue, but none of them can decode its name and version.",
}
_UNTOLD: Final = (
    "A worker of an older release serves its queue and does not tell what it decodes; none of the others can."
)


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
    until = "a time that is not known" if reason.until_ms is None else moment(reason.until_ms)
    return _TEXTS[reason.code].format(until=until)


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
        return f"it has been promised a place at {moment(reason.until_ms)}"
    if reason.ahead is not None:
        if not reason.ahead:
            return "it is the first of its priority in the limit's line"
        return f"it waits in the limit's line, behind {_counted(reason.ahead)}"
    return "the next claim will see that"


def _counted(ahead: int) -> str:
    if ahead >= AHEAD_MAX:
        return f"{AHEAD_MAX:,} or more"
    return f"{ahead:,}"
