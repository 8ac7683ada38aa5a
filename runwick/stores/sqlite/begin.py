"""Begin: a reserved attempt is authorised to call its handler, charged, and given its payload.

Sent again, it finds the attempt begun and charges nothing. A job that somebody cancelled, or that has expired, does not
begin any more: it ends, uncharged.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt, Begun
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.steps import Step, Steps


def begin(gate: Gate, interned: Interned, attempt: Attempt, clock: Clock) -> Act[Begun]:
    """Authorise and charge a reserved attempt and read its payload, or say why it may not run."""
    return Act("begin", lambda: _begin(gate, interned, attempt, clock.now_ms()))


def _begin(gate: Gate, interned: Interned, attempt: Attempt, now_ms: int) -> Steps[Begun]:
    fence = (attempt.job, attempt.claim_token, now_ms)
    yield Step("begin_charge", fence)
    rows = yield Step("begin_read", fence)
    if not rows:
        return (yield from _end(gate, interned, fence))
    ((application, executions, payload),) = rows
    gate.admit("begin", application)  # raised, it takes the charge back
    return Begun(msgspec.structs.replace(attempt, begun=True, execution=executions, payload=payload))


def _end(gate: Gate, interned: Interned, fence: tuple[int, bytes, int]) -> Steps[Begun]:
    """End the job that did not begin, if it is still the caller's."""
    rows = yield Step("begin_kept", fence)
    if not rows:
        return Begun(None)
    ((application, cancel_requested_at_ms, holds),) = rows
    gate.admit("begin", application)
    job, _, now_ms = fence
    endings, given_back = (yield from Endings.opened(now_ms)), GivenBack(interned)
    given_back.ended(job, holds)
    if cancel_requested_at_ms is None:
        endings.expire([job])
    else:
        endings.cancel([job])
    yield from endings.write()
    yield from given_back.call_in(now_ms)
    return Begun(None, "expired" if cancel_requested_at_ms is None else "cancel_requested")
