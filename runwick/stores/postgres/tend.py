"""Tend: what a crash left in the lines of limits is set right, and keys and receipts that are over are forgotten."""

from typing import Final

from runwick.contracts.dispatching import ANSWERS_KEPT_MS
from runwick.contracts.limits import Tended
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps

_START: Final = bytes(16)
_FORGOTTEN_AT_ONCE: Final = packed.number(100)
LIMITS_AT_ONCE: Final = 100
"""Limits that one statement looks at for a queue that is open again."""


def tend(bound: Bound, application: str, after: bytes | None, limit: int) -> Act[Tended]:
    """Look through up to `limit` limits with a line, from behind `after`: scopes and windows, all by id."""
    return MakesDue("tend", lambda due: _tend(bound, application, after, limit, due))


def _tend(bound: Bound, application: str, after: bytes | None, limit: int, due: Due) -> Steps[Tended]:
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return Tended(0, 0, None)
    return (yield from _look_through(bound, number, after, limit, due, counts=True))


def call_in_everywhere(bound: Bound, application: int, behind: bytes, due: Due) -> Steps[None]:
    """Call for the room of all limits of an application behind that one: a queue is open again whose jobs may stand in
    their lines."""
    after: bytes | None = behind
    while after is not None:
        tended = yield from _look_through(bound, application, after, LIMITS_AT_ONCE, due, counts=False)
        after = tended.after


def _look_through(
    bound: Bound, number: int, after: bytes | None, limit: int, due: Due, *, counts: bool
) -> Steps[Tended]:
    rows = yield Step(
        "tend",
        (
            *bound.gate(),
            packed.number(number),
            packed.Id(after or _START),
            packed.number(limit),
            CALLS_MAX,
            packed.number(ANSWERS_KEPT_MS),
            _FORGOTTEN_AT_ONCE,
            packed.flag(counts),
        ),
    )
    limits = [row for row in rows if row[1] is not None]
    calls = [tuple(row[2:]) for row in rows if row[1] is None]
    called = call_in(bound, calls, due, number)
    mended = sum(is_mended for _, is_mended, *_ in limits)
    return Tended(called, mended, limits[-1][0] if limits and len(limits) == limit else None)
