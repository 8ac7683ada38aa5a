"""Limits and queues as people read them."""

from collections.abc import Sequence
from typing import Any, Final

from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeRecord
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.steps import Step, Steps

_FIRST: Final = bytes(16)
"""No limit has this id."""


def queues(bound: Bound, application: str) -> Act[list[QueueRecord]]:
    """All that somebody has registered or dispatched to, by name."""
    return Act("queues", lambda: _queues(bound, application), reads_only=True)


def _queues(bound: Bound, application: str) -> Steps[list[QueueRecord]]:
    rows: list[tuple[Any, ...]] = yield Step("queues", (*bound.reading(), application))
    return [
        QueueRecord(queue=queue, paused=since_ms is not None, revision=revision, since_ms=since_ms)
        for queue, revision, since_ms in rows
    ]


def scopes(bound: Bound, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
    """Up to `limit`, by id, from behind that one."""
    return Act("scopes", lambda: _scopes(bound, application, kind, after, limit), reads_only=True)


def _scopes(
    bound: Bound, application: str, kind: LimitKind, after: bytes | None, limit: int
) -> Steps[list[ScopeRecord]]:
    rows: list[tuple[Any, ...]] = yield Step("scopes", _page(bound, application, kind, after, limit))
    return [scope_record(row) for row in rows]


def rates(bound: Bound, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
    """As `scopes`."""
    return Act("rates", lambda: _rates(bound, application, kind, after, limit), reads_only=True)


def _rates(bound: Bound, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Steps[list[RateRecord]]:
    rows: list[tuple[Any, ...]] = yield Step("rates", _page(bound, application, kind, after, limit))
    return [rate_record(row) for row in rows]


def _page(bound: Bound, application: str, kind: LimitKind, after: bytes | None, limit: int) -> tuple[Any, ...]:
    behind = packed.Id(after or _FIRST)
    return (*bound.reading(), application, packed.text(kind.value), behind, packed.number(limit))


def scope_record(row: Sequence[Any]) -> ScopeRecord:
    """A scope, of its columns: id, kind, key, capacity, in_use, whether jobs wait, revision, fence."""
    limit_id, kind, key, capacity, in_use, waiting, revision, fence = row
    return ScopeRecord(
        id=limit_id,
        kind=LimitKind(kind),
        key=key,
        capacity=capacity,
        in_use=in_use,
        waiting=waiting,
        revision=revision,
        fence=fence,
    )


def rate_record(row: Sequence[Any]) -> RateRecord:
    """A window, of its columns: id, kind, key, most, window_ms, granted, of these in the window, whether jobs wait."""
    limit_id, kind, key, most, window_ms, granted, in_window, waiting = row
    return RateRecord(
        id=limit_id,
        kind=LimitKind(kind),
        key=key,
        max_executions=most,
        window_ms=window_ms,
        granted=granted,
        in_window=in_window,
        waiting=waiting,
    )
