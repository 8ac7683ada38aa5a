"""The store's own log of limits and keys, as a campaign has it written.

Databases get triggers, which write in the transaction that they tell of: whatever is rolled back or lost in a crash is
not told. For Redis every process of a campaign calls functions of its own, which write in the commit that they tell of.
A memory store is looked at after every act.
"""

import contextlib
import functools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar
from unittest import mock
from uuid import UUID

import psycopg

from runwick.contracts.stores import Act
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.store import MemoryStore
from runwick.stores.redis import store as redis_store
from runwick.stores.redis.library import Library
from scripts.servers.redis import RedisServer
from tests.chaos.history import LimitChange
from tests.redis.recount import asked, extended

T = TypeVar("T")

_SQL: Final = Path(__file__).parent / "sql"
_LUA: Final = Path(__file__).parent / "lua"


def log_sqlite(path: Path) -> None:
    """Have a migrated file write its log from now on."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript((_SQL / "limit_log_sqlite.sql").read_text())


def log_postgres(url: str) -> None:
    """Have a migrated database write its log from now on."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((_SQL / "limit_log_postgres.sql").read_bytes())


def read_sqlite(connection: sqlite3.Connection) -> list[LimitChange]:
    rows = connection.execute(
        "SELECT log.what, log.limit_id, job.id, log.value, log.at_ms "
        "FROM chaos_log AS log LEFT JOIN runwick_job AS job ON job.position = log.job ORDER BY log.number"
    )
    return [LimitChange(*row) for row in rows]


def read_postgres(connection: "psycopg.Connection[tuple[object, ...]]") -> list[LimitChange]:
    rows = connection.execute("SELECT what, limit_id, job, value, at_ms FROM chaos.log ORDER BY number")
    return [LimitChange(*(value.bytes if isinstance(value, UUID) else value for value in row)) for row in rows]  # type: ignore[arg-type]


@functools.cache
def logged_library() -> Library:
    """This release's functions; they write the log, and read it and more for the checker."""
    return extended(_LUA / "limit_log.lua", _LUA / "reading.lua")


@contextlib.contextmanager
def logging_redis() -> Iterator[None]:
    """Stores that this process opens on Redis meanwhile call the functions that write the log."""
    with mock.patch.object(redis_store, "library", logged_library):
        yield


def read_redis(server: RedisServer, application: str) -> tuple[list[LimitChange], dict[bytes, int]]:
    """The log, and when each attempt was claimed."""
    changes, claims = asked(server, logged_library(), "chaos_log", application)
    return [LimitChange(*change) for change in changes], dict(claims)


class LoggedMemoryStore(MemoryStore):
    """A memory store that keeps the log of what each act has changed."""

    log: list[LimitChange]
    _before: "_Standing"

    @classmethod
    def of(cls, store: MemoryStore) -> "LoggedMemoryStore":
        """The same store, its clock and its tables."""
        logged = cls(clock=store._clock, ids=store._ids, tables=store.tables)
        logged.log = []
        logged._before = _Standing(logged)
        return logged

    def run(self, act: Act[T]) -> T:
        try:
            return super().run(act)
        finally:
            after = _Standing(self)
            self.log += after.since(self._before, self.now_ms())
            self._before = after


class _Standing:
    """The limits and keys of a memory store between two acts."""

    def __init__(self, store: MemoryStore) -> None:
        tables = store.tables
        self.capacities = {limit: row.scope.capacity for limit, row in tables.limits.scopes.items()}
        self.holds: dict[tuple[bytes, bytes, bytes], int | None] = {}
        """Scope, job and claim to the token."""
        self.promises: dict[bytes, tuple[bytes, int]] = {}
        self.live: set[tuple[bytes, int]] = set()
        for row in tables.rows.values():
            self._look_at(row)
        self.granted = {limit: row.window.granted for limit, row in tables.limits.windows.items()}
        self.slots = {limit: dict(row.window.slots) for limit, row in tables.limits.windows.items()}
        self.most = {limit: row.window.most for limit, row in tables.limits.windows.items()}

    def _look_at(self, row: JobRow) -> None:
        job_id = row.command.job_id
        if row.lease is not None:
            for scope in row.lease.holds:
                self.holds[scope, job_id, row.lease.attempt_id] = row.lease.fences.get(scope)
        if row.called is not None:
            self.promises[job_id] = row.called, row.due_at_ms
        if not row.state.terminal:
            self.live.add((job_id, row.generation))

    def since(self, before: "_Standing", at_ms: int) -> Iterator[LimitChange]:
        """What happened between."""
        for limit, capacity in self.capacities.items():
            if before.capacities.get(limit) != capacity:
                yield LimitChange("capacity", limit, None, capacity, at_ms)
        for scope, job_id, _ in before.holds.keys() - self.holds.keys():
            yield LimitChange("free", scope, job_id, None, at_ms)
        for hold in sorted(self.holds.keys() - before.holds.keys(), key=lambda hold: self.holds[hold] or 0):
            yield LimitChange("take", hold[0], hold[1], self.holds[hold], at_ms)
        for job_id, _ in before.live - self.live:
            yield LimitChange("over", None, job_id, None, at_ms)
        for job_id, _ in self.live - before.live:
            yield LimitChange("live", None, job_id, None, at_ms)
        for limit, granted in self.granted.items():
            for number in range(before.granted.get(limit, 0), granted):
                yield LimitChange("grant", limit, None, self.slots[limit][number % self.most[limit]], at_ms)
        for job_id in before.promises.keys() - self.promises.keys():
            yield LimitChange("settled", before.promises[job_id][0], job_id, None, at_ms)
        for job_id, promise in self.promises.items():
            if before.promises.get(job_id) != promise:
                yield LimitChange("promise", promise[0], job_id, promise[1], at_ms)
