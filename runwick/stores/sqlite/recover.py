"""Recover: attempts whose lease ran out are closed as the policy says, whoever held them."""

from collections.abc import Callable

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Expired
from runwick.contracts.outcomes import Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import leased
from runwick.stores.steps import Step, Steps


def recover(
    gate: Gate,
    interned: Interned,
    application: str,
    decide: Callable[[Expired], Settlement],
    limit: int,
    clock: Clock,
) -> Act[int]:
    """Close up to `limit` expired attempts of an application, the longest expired first; answers how many."""
    return Act("recover", lambda: _recover(gate, interned, application, decide, limit, clock))


def _recover(
    gate: Gate,
    interned: Interned,
    application: str,
    decide: Callable[[Expired], Settlement],
    limit: int,
    clock: Clock,
) -> Steps[int]:
    gate.admit("recover", application)
    now_ms = clock.now_ms()
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return 0
    cancels = dict((yield Step("expired", (number, now_ms, limit))))
    if not cancels:
        return 0
    endings = yield from Endings.opened(now_ms)
    for attempt in (yield from leased(interned, list(cancels), payload_max_bytes=-1)):
        settlement = decide(Expired(attempt, cancels[attempt.job] is not None))
        endings.abandon((JobState.RUNNING if attempt.begun else JobState.RESERVED).value, settlement)
    yield from endings.write()
    return len(cancels)
