"""Expire: waiting jobs that had not begun by their expiry end as failed, also where no claim would ever meet them."""

from runwick.contracts.ambient import Clock
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.steps import Step, Steps


def expire(gate: Gate, interned: Interned, application: str, limit: int, clock: Clock) -> Act[int]:
    """Close up to `limit` of an application's waiting jobs, the longest expired first; answers how many."""
    return Act("expire", lambda: _expire(gate, interned, application, limit, clock))


def _expire(gate: Gate, interned: Interned, application: str, limit: int, clock: Clock) -> Steps[int]:
    gate.admit("expire", application)
    now_ms = clock.now_ms()
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return 0
    rows = yield Step("expirable", (number, now_ms, limit))
    if rows:
        endings, given_back = (yield from Endings.opened(now_ms)), GivenBack(interned)
        for job, *called_in in rows:
            endings.expire([job])
            given_back.left(*called_in)
        yield from endings.write()
        yield from given_back.call_in(now_ms)
    return len(rows)
