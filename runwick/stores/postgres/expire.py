"""Expire: waiting jobs that had not begun by their expiry end as failed, also where no claim would ever meet them."""

from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps


def expire(bound: Bound, application: str, limit: int) -> Act[int]:
    """Close up to `limit` of an application's waiting jobs, the longest expired first; answers how many."""
    return Act("expire", lambda: _expire(bound, application, limit))


def _expire(bound: Bound, application: str, limit: int) -> Steps[int]:
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return 0
    ((expired,),) = yield Step("expire", (*bound.gate(), packed.number(number), packed.number(limit)))
    return int(expired)
