"""Scopes and rate windows as one act reads them, changes them by the rules of `runwick.policy`, and writes them back.

Everything happens under SQLite's write lock, so what was read still holds when it is written.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from runwick.contracts.limits import CALLED_MAX, LimitKind, ScopeNeed
from runwick.policy.limit_ids import ID_BYTES
from runwick.policy.limits import Scope, Window
from runwick.policy.lines import LOOKED_MAX, Called
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

_RANKS: Final = range(3)
_FURTHER_MAX: Final = 10_000
"""Jobs of one rank that one act looks at behind `LOOKED_MAX` of paused queues: it reads nothing but the index."""


def joined(ids: Iterable[bytes]) -> bytes:
    """Ids of 16 bytes as one parameter or column."""
    return b"".join(ids)


def ids_of(column: bytes | None) -> list[bytes]:
    """The other way round."""
    column = column or b""
    return [column[start : start + ID_BYTES] for start in range(0, len(column), ID_BYTES)]


class Limits:
    """The limits that an act has to do with."""

    def __init__(self) -> None:
        self.scopes: dict[bytes, Scope] = {}
        self.windows: dict[bytes, Window] = {}

    def read(self, scopes: Iterable[bytes], windows: Mapping[bytes, int]) -> Steps[None]:
        """Read these; ids that are none are passed over.

        Args:
            scopes: ids.
            windows: ids, each with how many grants and promises the act may make.
        """
        if wanted := joined(sorted(set(scopes))):
            for row in (yield Step("scopes_read", (wanted,))):
                self._add_scope(*row)
        if windows:
            for row in (yield Step("rates_read", (joined(sorted(windows)),))):
                window = self._add_window(*row)
                slots = json_list(window.slots_needed(windows[window.id]))
                window.slots.update((yield Step("slots_read", (window.id, slots))))

    def write(self, called: Sequence[Called[int]]) -> Steps[None]:
        """Write what has changed, and call these jobs into their lanes."""
        scopes = [
            (scope.id, scope.in_use, scope.fence, scope.calls, scope.has_line)
            for scope in self.scopes.values()
            if scope.changed
        ]
        windows = [window for window in self.windows.values() if window.changed]
        grants = [(window.id, slot, window.slots[slot]) for window in windows for slot in sorted(window.written)]
        if scopes:
            yield Step("scope_put", scopes, many=True)
        if windows:
            yield Step("rate_put", [_rate_row(window) for window in windows], many=True)
        if grants:
            yield Step("grant_put", grants, many=True)
        if called:
            yield Step("call", [(call.job, call.limit, call.due_ms) for call in called], many=True)

    def _add_scope(
        self, scope_id: bytes, kind: str, capacity: int, in_use: int, fence: int, calls: int, has_line: int
    ) -> None:
        self.scopes[scope_id] = Scope(
            scope_id,
            capacity=capacity,
            in_use=in_use,
            fenced=kind == LimitKind.RESOURCE.value,
            fence=fence,
            calls=calls,
            has_line=bool(has_line),
        )

    def _add_window(
        self,
        window_id: bytes,
        most: int,
        window_ms: int,
        granted: int,
        promised: int,
        shift_ms: int,
        last_ms: int,
        calls: int,
        has_line: int,
    ) -> Window:
        window = self.windows[window_id] = Window(
            window_id,
            most=most,
            window_ms=window_ms,
            granted=granted,
            promised=promised,
            shift_ms=shift_ms,
            last_ms=last_ms,
            calls=calls,
            has_line=bool(has_line),
        )
        return window


def _rate_row(window: Window) -> tuple[object, ...]:
    """A row of ``rate_put.sql``."""
    return (
        window.id,
        window.granted,
        window.promised,
        window.shift_ms,
        window.last_ms,
        window.calls,
        window.has_line,
    )


def declare(interned: Interned, application: int, needs: Mapping[bytes, ScopeNeed], now_ms: int) -> Steps[None]:
    """Create those of these scopes, by their ids, that are not there."""
    rows = [(limit, application, need.kind.value, need.key, need.capacity, now_ms) for limit, need in needs.items()]
    of_all = [row for row, need in zip(rows, needs.values(), strict=True) if need.kind is not LimitKind.RESOURCE]
    if of_all and (yield Step("scope_add", of_all, many=True)):
        yield Step("intake_raise", (application,))
        interned.made_names()
    resources = [row for row, need in zip(rows, needs.values(), strict=True) if need.kind is LimitKind.RESOURCE]
    if resources:
        yield Step("scope_add", resources, many=True)


class OpenLine:
    """The jobs of one line as they stood when the act began, as many as it may call."""

    def __init__(self, ranks: Sequence[Sequence[tuple[bytes, int]]], length: int) -> None:
        self._ranks = [iter(rank) for rank in ranks]
        self._left = length

    def take(self, rank: int) -> tuple[bytes, int] | None:
        head = next(self._ranks[rank], None)
        self._left -= head is not None
        return head

    def empty(self) -> bool:
        return not self._left


class OpenLines:
    """The lines of an act's limits, each read from its heads as far as the act may call: a line is never walked."""

    def __init__(self, interned: Interned, opens: tuple[int, str] | None = None) -> None:
        """
        Args:
            opens: application and queue that are paused, and are open again with this act.
        """
        self._interned = interned
        self._opens = opens
        self._lines: dict[bytes, OpenLine] = {}

    def read(self, limits: Limits, calls: Mapping[bytes, int]) -> Steps[None]:
        """Open the lines that are there.

        Args:
            limits: of the act.
            calls: limit to how many jobs may be called out of its line.
        """
        have_one = [scope.id for scope in limits.scopes.values() if scope.has_line]
        have_one += [window.id for window in limits.windows.values() if window.has_line]
        if not any(calls.get(limit_id) for limit_id in have_one):
            return
        intake = yield from self._interned.refresh()
        intake = intake._replace(paused=intake.paused - {self._opens})
        paused = intake.paused_lanes(self._interned.lanes.values)
        for limit_id in have_one:
            if most := min(calls.get(limit_id, 0), CALLED_MAX):
                reach = max(most, LOOKED_MAX) if paused else most
                ((length,),) = yield Step("line_length", (limit_id, reach + 1))
                ranks = []
                for rank in _RANKS:
                    ranks.append((yield from self._heads(limit_id, rank, paused, most, is_long=length > LOOKED_MAX)))
                self._lines[limit_id] = OpenLine(ranks, length)

    def _heads(
        self, limit_id: bytes, rank: int, paused: Sequence[int], most: int, *, is_long: bool
    ) -> Steps[list[tuple[bytes, int]]]:
        """Where `LOOKED_MAX` stand in front whose queues are paused, it is looked behind them too, each time from where
        that was left; at the end of the rank it begins anew."""
        lanes = json_list(paused)
        heads: list[tuple[bytes, int]] = yield Step("line_heads", (limit_id, rank, b"", LOOKED_MAX, lanes, most))
        if not paused or not is_long or len(heads) == most:
            return heads
        edge = yield Step("line_edge", (limit_id, rank, b"", LOOKED_MAX))
        if not edge:
            return heads
        behind = max(edge[0][0], self._interned.looked.get((limit_id, rank), b""))
        further = yield Step("line_heads", (limit_id, rank, behind, _FURTHER_MAX, lanes, most - len(heads)))
        if not further:
            edge = yield Step("line_edge", (limit_id, rank, behind, _FURTHER_MAX))
            behind = edge[0][0] if edge else b""
        self._interned.looked[limit_id, rank] = behind
        return [*heads, *further]

    def __call__(self, limit: bytes, /) -> OpenLine:
        return self._lines[limit]
