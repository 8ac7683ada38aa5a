"""What acts cost on SQLite: statements and commits by the trace of its connections, pages by the length of its log."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.sqlite import checkpoint, opening
from runwick.stores.sqlite.migrate import migrate
from tests.hot_paths.acts import Readings, acts, acts_system_calls, opened
from tests.hot_paths.drain import drained

_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24


def sqlite_paths(folder: Path) -> dict[str, float]:
    """By ``sqlite ACT: COUNT``; `folder` is empty."""
    watched, traced, emptied = (folder / f"{name}.db" for name in ("watched", "traced", "emptied"))
    for file in (watched, traced, emptied):
        migrate(file, SystemClock(), SystemIds())
    costs = _acts(watched)
    costs |= acts_system_calls(_url(traced), folder, syncs_itself=True)
    costs |= drained(_url(emptied), folder, dict)
    return {f"sqlite {name}": cost for name, cost in costs.items()}


def _url(file: Path) -> str:
    return f"sqlite:///{file}"


def _acts(file: Path) -> dict[str, float]:
    with _traced() as statements, closing(sqlite3.connect(file)) as connection:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()

        def read() -> Readings:
            log_bytes = file.with_name(f"{file.name}-wal").stat().st_size - _HEADER_BYTES
            return {**statements, "pages logged per job": log_bytes / (_FRAME_HEADER_BYTES + page_bytes)}

        with opened(_url(file)) as rw:
            return acts(rw, read)


@contextmanager
def _traced() -> Iterator[Counter[str]]:
    """Count what connections of stores execute that are opened meanwhile; their logs are never emptied."""
    counts: Counter[str] = Counter({"statements": 0, "commits": 0})
    connected = opening.plain_connection

    def note(statement: str) -> None:
        counts["statements"] += 1
        counts["commits"] += statement == "COMMIT"

    def connect(*arguments: Any) -> sqlite3.Connection:
        connection = connected(*arguments)
        connection.set_trace_callback(note)
        return connection

    with (
        mock.patch.object(opening, "plain_connection", connect),
        mock.patch.object(checkpoint, "PAGES_BETWEEN", 1 << 30),
    ):
        yield counts
