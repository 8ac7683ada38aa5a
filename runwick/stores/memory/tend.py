"""Tend: what a crash left behind is set right, limit by limit, and what nobody needs any more is forgotten."""

from collections import Counter

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import ANSWERS_KEPT_MS
from runwick.contracts.limits import Tended
from runwick.contracts.stores import Act
from runwick.policy.limits import Scope, Window
from runwick.policy.lines import Calling, tend_scope, tend_window
from runwick.stores.memory.tables import Tables, act


def tend(tables: Tables, application: str, after: bytes | None, limit: int, clock: Clock) -> Act[Tended]:
    """Look through up to `limit` limits with a line, from behind `after`: scopes and windows, all by id."""
    return act("tend", lambda: _tend(tables, application, after, limit, clock.now_ms()))


def _tend(tables: Tables, application: str, after: bytes | None, limit: int, now_ms: int) -> Tended:
    tables.admit("tend", application)
    holds = Counter(held for row in tables.leased(application) if row.lease is not None for held in row.lease.holds)
    calling = Calling(tables.open_line, now_ms)
    mended = 0
    chosen = _with_a_line(tables, application, after)[:limit]
    for limit_id in chosen:
        own = tables.limits[limit_id]
        if isinstance(own, Scope):
            mended += tend_scope(own, holds[limit_id], calling)
        else:
            tend_window(own, now_ms, calling)
    tables.take_all_calls(calling, now_ms)
    _forget(tables, now_ms)
    return Tended(len(calling.called), mended, chosen[-1] if limit and len(chosen) == limit else None)


def call_in_everywhere(tables: Tables, application: str, now_ms: int) -> None:
    """Call for the room of all limits of an application: a queue is open again whose jobs may stand in their lines."""
    calling = Calling(tables.open_line, now_ms)
    for limit_id in _with_a_line(tables, application, None):
        own = tables.limits[limit_id]
        if isinstance(own, Scope):
            calling.into_scope(own, own.room)
        else:
            tend_window(own, now_ms, calling)
    tables.take_all_calls(calling, now_ms)


def _with_a_line(tables: Tables, application: str, after: bytes | None) -> list[bytes]:
    own: list[Scope | Window] = [row.scope for row in tables.limits.scopes.values() if row.application == application]
    own += [row.window for row in tables.limits.windows.values() if row.application == application]
    return sorted(each.id for each in own if each.has_line and (after is None or each.id > after))


def _forget(tables: Tables, now_ms: int) -> None:
    """Window keys whose time is over, and receipts that nobody is promised any more."""
    for key in [key for key, kept in tables.window_keys.items() if kept.until_ms <= now_ms]:
        del tables.window_keys[key]
    for operation in [
        operation for operation, kept in tables.reused.items() if kept.deadline_ms + ANSWERS_KEPT_MS < now_ms
    ]:
        del tables.reused[operation]
