"""Jobs that an act called out of a limit's line, as its statement tells of them; and limits that are idle.

A limit is idle where it has room, and an act could call nobody although somebody stands in its line: some transaction
held the row, or the act may call no more. It is owed these calls, which `recalling` makes up for.
"""

from collections.abc import Iterable
from typing import Final

from runwick.contracts.limits import CALLED_MAX
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.steps import Step, Steps

CALLS_MAX: Final = packed.number(CALLED_MAX)
"""How many an act calls at most, as its statement takes it."""

Call = tuple[int | None, int, bytes]
"""Lane, due_at_ms, job; or None, how many calls are owed, and the limit."""


def call_in(bound: Bound, calls: Iterable[Call], due: Due, application: int | None = None) -> int:
    """These stand in their lanes again: no claim of this process passes them by, and workers may ask. Answers how many.

    Args:
        bound: the store.
        calls: whom, and who is idle.
        due: of the act.
        application: whose jobs these are, where the act may be an operator's, whose process serves nobody; None for
            those that workers of this process serve.
    """
    called = 0
    for lane, due_at_ms, job in calls:
        if lane is None:
            due.owed[job] = due.owed.get(job, 0) + due_at_ms
            continue
        called += 1
        bound.marks.lower(lane, (due_at_ms, job))
        due |= bound.names.serves if application is None else {application}
    return called


def call_again(bound: Bound, limit: bytes, owed: int) -> MakesDue[int]:
    """Make up for calls that an idle limit is owed, as far as there is room for them; answers how many were called."""
    return MakesDue("tend", lambda due: _call_again(bound, limit, owed, due))


def _call_again(bound: Bound, limit: bytes, owed: int, due: Due) -> Steps[int]:
    rows = yield Step("call_again", (*bound.gate(), packed.Id(limit), packed.number(owed), CALLS_MAX))
    return call_in(bound, (tuple(row[1:]) for row in rows), due, rows[0][0] if rows else None)
