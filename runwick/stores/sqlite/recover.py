"""Recover: attempts that nobody keeps any more are closed as the policy says.

Their lease ran out, whoever held them; or they are those of a worker that is known to be dead, whatever their leases.
"""

from collections.abc import Callable

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings, under_cancel
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import leased
from runwick.stores.steps import Step, Steps


def recover(
    gate: Gate,
    interned: Interned,
    application: str,
    decide: Callable[[Attempt], Settlement],
    limit: int,
    worker: bytes | None,
    clock: Clock,
) -> Act[int]:
    """Close up to `limit` attempts of an application, those first whose lease ends first; answers how many. They are
    the expired ones, or with `worker` all that this dead worker holds."""
    return Act("recover", lambda: _recover(gate, interned, application, decide, limit, worker, clock))


def _recover(
    gate: Gate,
    interned: Interned,
    application: str,
    decide: Callable[[Attempt], Settlement],
    limit: int,
    worker: bytes | None,
    clock: Clock,
) -> Steps[int]:
    gate.admit("recover", application)
    now_ms = clock.now_ms()
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return 0
    if worker is None:
        rows = yield Step("expired", (number, now_ms, limit))
    else:
        yield Step("presence_end", (worker, number, now_ms))
        rows = yield Step("recover_of_worker", (number, worker, limit))
    if not rows:
        return 0
    endings, given_back = (yield from Endings.opened(now_ms)), GivenBack(interned)
    attempts = yield from leased(interned, [job for job, *_ in rows], payload_max_bytes=-1)
    for attempt, (job, cancel_requested_at_ms, holds) in zip(attempts, rows, strict=True):
        settlement = decide(attempt)
        if cancel_requested_at_ms is not None:
            settlement = under_cancel(settlement)
        given_back.ended(job, holds)
        endings.abandon((JobState.RUNNING if attempt.begun else JobState.RESERVED).value, settlement)
    yield from endings.write()
    yield from given_back.call_in(now_ms)
    return len(rows)
