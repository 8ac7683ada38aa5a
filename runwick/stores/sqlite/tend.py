"""Tend: what a crash left behind is set right, limit by limit, and what nobody needs any more is forgotten.

In the same way it is looked everywhere for room when a queue is open again, and an act goes on that may call no more.
"""

from collections.abc import Mapping
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import ANSWERS_KEPT_MS
from runwick.contracts.limits import CALLED_MAX, Tended
from runwick.policy.limits import UNUSED_AFTER_MS
from runwick.policy.lines import Calling, tend_scope, tend_window
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.going import GoesOn, Rest
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.limits import Limits, OpenLines
from runwick.stores.steps import Step, Steps

_FORGOTTEN_MAX: Final = 1_000
"""Rows of one kind that one pass forgets."""
_LIMITS_MAX: Final = 100
"""Limits that one act looks at where nobody says how many."""


def tend(
    gate: Gate, interned: Interned, application: str, after: bytes | None, limit: int, clock: Clock
) -> GoesOn[Tended]:
    """Look through up to `limit` limits with a line, from behind `after`, scopes and windows by id."""
    return GoesOn("tend", lambda rest: _tend(gate, interned, application, after, limit, clock, rest))


def _tend(
    gate: Gate, interned: Interned, application: str, after: bytes | None, limit: int, clock: Clock, rest: Rest
) -> Steps[Tended]:
    gate.admit("tend", application)
    tended = yield from _look_through(gate, interned, application, after, limit, clock, rest, counts=True)
    yield Step("uniqueness_forget", (clock.now_ms(), _FORGOTTEN_MAX))
    yield Step("reused_forget", (clock.now_ms() - ANSWERS_KEPT_MS, _FORGOTTEN_MAX))
    return tended


def call_in_everywhere(
    gate: Gate,
    interned: Interned,
    application: str,
    clock: Clock,
    rest: Rest,
    after: bytes | None = None,
    opens: tuple[int, str] | None = None,
) -> Steps[None]:
    """Call for the room of limits of an application, from behind `after`: a queue is open again whose jobs may stand in
    their lines. What it does not come to is left to the rest.

    Args:
        opens: the queue with its application, where it is open with this act alone so far.
    """
    tended = yield from _look_through(
        gate, interned, application, after, _LIMITS_MAX, clock, rest, counts=False, opens=opens
    )
    if tended.after is not None:
        rest.append(_call_in_behind(gate, interned, application, clock, tended.after))


def _call_in_behind(gate: Gate, interned: Interned, application: str, clock: Clock, after: bytes) -> GoesOn[None]:
    def steps(rest: Rest) -> Steps[None]:
        gate.admit("tend", application)
        yield from call_in_everywhere(gate, interned, application, clock, rest, after)

    return GoesOn("tend", steps)


def call_again(
    gate: Gate, interned: Interned, application: str, owed: Mapping[bytes, int], clock: Clock
) -> GoesOn[None]:
    """Call what an act owed to limits, as far as there is room for it."""

    def steps(rest: Rest) -> Steps[None]:
        gate.admit("tend", application)
        limits, lines = Limits(), OpenLines(interned)
        yield from limits.read(owed, dict.fromkeys(owed, CALLED_MAX))
        yield from lines.read(limits, dict.fromkeys(owed, CALLED_MAX))
        calling = Calling(lines, clock.now_ms())
        for limit, calls in owed.items():
            scope = limits.scopes.get(limit)
            if scope is None:
                calling.make_up(limits.windows[limit], min(calls, CALLED_MAX))
            else:
                calling.make_up(scope, calls)
        yield from limits.write(calling.called)
        if calling.called:
            go_on(gate, interned, application, calling.owed, clock, rest)

    return GoesOn("tend", steps)


def go_on(
    gate: Gate, interned: Interned, application: str, owed: Mapping[bytes, int], clock: Clock, rest: Rest
) -> None:
    """An act that may call no more leaves what it owes to the next one."""
    if owed:
        rest.append(call_again(gate, interned, application, owed, clock))


def _look_through(
    gate: Gate,
    interned: Interned,
    application: str,
    after: bytes | None,
    limit: int,
    clock: Clock,
    rest: Rest,
    *,
    counts: bool,
    opens: tuple[int, str] | None = None,
) -> Steps[Tended]:
    now_ms = clock.now_ms()
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return Tended(0, 0, None)
    chosen = yield Step("lines", (number, after or b"", limit))
    ids = [limit_id for limit_id, _ in chosen]
    limits, lines = Limits(), OpenLines(interned, opens)
    yield from limits.read(
        (limit_id for limit_id, is_scope in chosen if is_scope),
        {limit_id: CALLED_MAX for limit_id, is_scope in chosen if not is_scope},
    )
    holds = {scope.id: scope.in_use for scope in limits.scopes.values()}
    for scope_id in limits.scopes if counts else ():
        ((holds[scope_id],),) = yield Step("holds_count", (scope_id,))
    yield from lines.read(limits, _room(limits, holds, now_ms))
    calling = Calling(lines, now_ms)
    mended = 0
    for limit_id in ids:
        if limit_id in limits.scopes:
            mended += tend_scope(limits.scopes[limit_id], holds[limit_id], calling)
        else:
            tend_window(limits.windows[limit_id], now_ms, calling)
    yield from limits.write(calling.called)
    go_on(gate, interned, application, calling.owed, clock, rest)
    return Tended(len(calling.called), mended, ids[-1] if limit and len(ids) == limit else None)


def _room(limits: Limits, holds: Mapping[bytes, int], now_ms: int) -> dict[bytes, int]:
    """How many jobs each limit may call: most have no room, and their lines are not read."""
    room = {scope.id: max(0, scope.capacity - holds[scope.id]) for scope in limits.scopes.values()}
    for window in limits.windows.values():
        unused = window.free(window.time_ms(now_ms), CALLED_MAX, UNUSED_AFTER_MS)
        room[window.id] = unused + window.unpromised
    return room
