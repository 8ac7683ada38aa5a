"""Expire: waiting jobs that had not begun by their expiry end as failed, also where no claim would ever meet them."""

from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps


def expire(bound: Bound, application: str, limit: int) -> Act[int]:
    """Close up to `limit` of an application's waiting jobs, the longest expired first; answers how many."""
    return MakesDue("expire", lambda due: _expire(bound, application, limit, due))


def _expire(bound: Bound, application: str, limit: int, due: Due) -> Steps[int]:
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return 0
    parameters = (*bound.gate(), packed.number(number), packed.number(limit), CALLS_MAX)
    (expired, *_), *called = yield Step("expire", parameters)
    call_in(bound, (tuple(row[1:]) for row in called), due, number)
    return int(expired)
