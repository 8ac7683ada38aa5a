"""Plain SQL for tests, and waiting for what it says."""

import time
from collections.abc import Callable
from typing import Any, Final

import psycopg

PATIENCE_S: Final = 30.0


def execute(url: str, statements: str) -> list[tuple[Any, ...]]:
    """Execute, each statement by itself; answers the rows of the last one."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statements.encode())
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []


def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until it is true; a test that waits longer than `PATIENCE_S` fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def asks_for_lock(url: str, mode: str) -> bool:
    """Whether somebody in this database waits for a lock of that mode on a table."""
    rows = execute(
        url,
        "SELECT 1 FROM pg_locks JOIN pg_database AS own ON own.oid = database "
        f"WHERE datname = current_database() AND NOT granted AND mode = '{mode}'",
    )
    return bool(rows)


def end_operators(url: str) -> None:
    """End the sessions of migrators and administrations in this database, as a server that stops does."""
    execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'runwick operator' AND datname = current_database()",
    )
