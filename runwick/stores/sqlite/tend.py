"""Tend: what a crash left behind is set right, limit by limit, and what nobody needs any more is forgotten."""

from collections.abc import Mapping
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import ANSWERS_KEPT_MS
from runwick.contracts.limits import CALLED_MAX, Tended
from runwick.contracts.stores import Act
from runwick.policy.limits import UNUSED_AFTER_MS
from runwick.policy.lines import Calling, tend_scope, tend_window
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.limits import Limits, OpenLines
from runwick.stores.steps import Step, Steps

_FORGOTTEN_MAX: Final = 1_000
"""Rows of one kind that one pass forgets."""


def tend(
    gate: Gate, interned: Interned, application: str, after: bytes | None, limit: int, clock: Clock
) -> Act[Tended]:
    """Look through up to `limit` limits with a line, from behind `after`, scopes and windows by id."""
    return Act("tend", lambda: _tend(gate, interned, application, after, limit, clock))


def _tend(
    gate: Gate, interned: Interned, application: str, after: bytes | None, limit: int, clock: Clock
) -> Steps[Tended]:
    gate.admit("tend", application)
    now_ms = clock.now_ms()
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return Tended(0, 0, None)
    chosen = yield Step("lines", (number, after or b"", limit))
    ids = [limit_id for limit_id, _ in chosen]
    limits, lines = Limits(), OpenLines(interned)
    yield from limits.read(
        (limit_id for limit_id, is_scope in chosen if is_scope),
        {limit_id: CALLED_MAX for limit_id, is_scope in chosen if not is_scope},
    )
    holds: dict[bytes, int] = {}
    for scope_id in limits.scopes:
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
    yield Step("uniqueness_forget", (now_ms, _FORGOTTEN_MAX))
    yield Step("reused_forget", (now_ms - ANSWERS_KEPT_MS, _FORGOTTEN_MAX))
    return Tended(len(calling.called), mended, ids[-1] if limit and len(ids) == limit else None)


def _room(limits: Limits, holds: Mapping[bytes, int], now_ms: int) -> dict[bytes, int]:
    """How many jobs each limit may call: most have no room, and their lines are not read."""
    room = {scope.id: max(0, scope.capacity - holds[scope.id]) for scope in limits.scopes.values()}
    for window in limits.windows.values():
        unused = window.free(window.time_ms(now_ms), CALLED_MAX, UNUSED_AFTER_MS)
        room[window.id] = unused + window.unpromised
    return room
