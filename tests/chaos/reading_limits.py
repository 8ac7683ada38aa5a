"""Reads how limits and keys were left after a run, and their log."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from runwick.contracts.limits import LimitKind
from scripts.servers.redis import RedisServer
from tests.chaos.history import LimitChange, StoredScope, StoredWindow
from tests.chaos.limit_log import LoggedMemoryStore, logged_library, read_postgres, read_sqlite
from tests.redis.recount import asked

_SCOPES: Final = """
SELECT scope.id, kind, key, capacity, in_use,
  (SELECT count(*) FROM {prefix}hold AS hold WHERE hold.scope = scope.id),
  (SELECT count(*) FROM {prefix}hot AS hot WHERE hot.line = scope.id)
FROM {prefix}scope AS scope
"""
_WINDOWS: Final = """
SELECT rate.id, kind, key, most, window_ms, granted, (SELECT count(*) FROM {prefix}hot AS hot WHERE hot.line = rate.id)
FROM {prefix}rate_window AS rate
"""


class LimitRows(NamedTuple):
    """Of limits and keys."""

    log: list[LimitChange]
    scopes: list[StoredScope]
    windows: list[StoredWindow]
    keys_held: list[bytes]
    """The jobs that hold an active key."""


def memory_limits(store: LoggedMemoryStore) -> LimitRows:
    tables = store.tables
    held = Counter(scope for row in tables.rows.values() if row.lease is not None for scope in row.lease.holds)
    scopes = [
        _scope(limit, row.kind, row.key, row.scope.capacity, row.scope.in_use, held[limit], len(tables.line(limit)))
        for limit, row in tables.limits.scopes.items()
    ]
    windows = [
        _window(
            limit,
            row.kind,
            row.key,
            row.window.most,
            row.window.window_ms,
            row.window.granted,
            len(tables.line(limit)),
        )
        for limit, row in tables.limits.windows.items()
    ]
    return LimitRows(store.log, scopes, windows, [tables.rows[job].command.job_id for job in tables.active.values()])


def sqlite_limits(connection: sqlite3.Connection) -> LimitRows:
    scopes, windows = (connection.execute(text.format(prefix="runwick_")).fetchall() for text in (_SCOPES, _WINDOWS))
    held = connection.execute("SELECT job_id FROM runwick_hot WHERE active IS NOT NULL").fetchall()
    return _rows(read_sqlite(connection), scopes, windows, held)


def postgres_limits(connection: "psycopg.Connection[Any]") -> LimitRows:
    scopes, windows, held = (
        [[_plain(value) for value in row] for row in connection.execute(text.encode())]
        for text in (
            _SCOPES.format(prefix="runwick."),
            _WINDOWS.format(prefix="runwick."),
            "SELECT job FROM runwick.hot WHERE active IS NOT NULL",
        )
    )
    return _rows(read_postgres(connection), scopes, windows, held)


def redis_limits(server: RedisServer, application: str, log: list[LimitChange], jobs: Sequence[Any]) -> LimitRows:
    """`jobs`: as `chaos_rows` answers them."""
    scopes, windows, held = asked(server, logged_library(), "chaos_limits", application)
    holds = Counter(limit for *_, limits, _ in jobs for limit in limits)
    lines = Counter(line for *_, line in jobs)
    return _rows(
        log,
        [(*scope, holds[scope[0]], lines[scope[0]]) for scope in scopes],
        [(*window, lines[window[0]]) for window in windows],
        [(job_id,) for job_id in held],
    )


def _rows(log: list[LimitChange], scopes: list[Any], windows: list[Any], held: list[Any]) -> LimitRows:
    return LimitRows(
        log, [_scope(*row) for row in scopes], [_window(*row) for row in windows], [job_id for (job_id,) in held]
    )


def _plain(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value


def _scope(limit: bytes, kind: str, key: str, capacity: int, in_use: int, held: int, line: int) -> StoredScope:
    return StoredScope(id=limit, kind=LimitKind(kind), key=key, capacity=capacity, in_use=in_use, held=held, line=line)


def _window(limit: bytes, kind: str, key: str, most: int, window_ms: int, granted: int, line: int) -> StoredWindow:
    return StoredWindow(
        id=limit, kind=LimitKind(kind), key=key, most=most, window_ms=window_ms, granted=granted, line=line
    )
