"""What acts cost on PostgreSQL, by what the server itself says.

Statements come from ``pg_stat_statements``, those within functions too; rows, index entries, bytes and commits from the
log that it writes ahead; syncs from ``pg_stat_io``; round trips from a proxy before it. Nothing of its own runs beside.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg

from scripts.servers.postgres import PostgresServer
from tests.faults.postgres_proxy import PostgresProxy
from tests.hot_paths.acts import Readings, acts, acts_system_calls, opened
from tests.hot_paths.drain import drained
from tests.servers import fresh_database, prepare_template

_SETTINGS: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
    "autovacuum": "off",
    "wal_writer_delay": "10s",  # it would sync what acts then need not
    "checkpoint_timeout": "1h",
}
_STATEMENTS: Final = """
SELECT coalesce(sum(calls) FILTER (WHERE toplevel), 0)::integer, coalesce(sum(calls), 0)::integer
FROM pg_stat_statements JOIN pg_database ON oid = dbid WHERE datname ^@ 'fresh_'
"""
_LOGGED: Final = """
SELECT "resource_manager/record_type", count, record_size
FROM pg_get_wal_stats(%s, pg_current_wal_flush_lsn(), per_record => true)
WHERE "resource_manager/record_type" ~ '^(Heap|Heap2|Btree|Transaction)/'
"""
_SYNCED: Final = "SELECT sum(fsyncs)::integer FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'"
_SESSIONS: Final = """
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_ROWS: Final = ("INSERT", "UPDATE", "HOT_UPDATE", "DELETE")
_COUNTED: Final = (
    "commits",
    "rows written per job",
    "rows moved per job",
    "rows locked per job",
    "index entries per job",
    "logged bytes per job",
)
_OF_DRAIN: Final = ("round trips", "index entries per job", "logged bytes per job")
_DEADLINE_S: Final = 20.0


class Watched:
    """A server that counts, and a connection from which one looks."""

    def __init__(self, server: PostgresServer) -> None:
        self.server: Final = server
        server.execute("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_walinspect")
        prepare_template(server)
        self._connection = psycopg.connect(server.url(), autocommit=True)

    def fetch(self, statement: str, *parameters: object) -> list[Any]:
        return self._connection.execute(statement.encode(), parameters).fetchall()

    def close(self) -> None:
        self._connection.close()


def postgres_paths(folder: Path) -> dict[str, float]:
    """By ``postgres ACT: COUNT``; `folder` is empty."""
    with PostgresServer(settings=_SETTINGS) as server, closing(Watched(server)) as watched:
        with PostgresProxy(server.port) as proxy:
            ((start,),) = watched.fetch("SELECT pg_current_wal_flush_lsn()")

            def read() -> Readings:
                ((top, everything),) = watched.fetch(_STATEMENTS)
                return {
                    "round trips": proxy.round_trips,
                    "statements": top,
                    "statements within": everything - top,
                    **_logged(watched.fetch(_LOGGED, start)),
                }

            def behind_the_proxy() -> str:
                return fresh_database(server).replace(f":{server.port}/", f":{proxy.port}/")

            def read_of_drain() -> Readings:
                readings = read()
                return {name: readings[name] for name in _OF_DRAIN}

            costs = _acts(watched, behind_the_proxy(), read) | drained(behind_the_proxy(), folder, read_of_drain)
        costs |= acts_system_calls(fresh_database(server), folder)
    return {f"postgres {name}": cost for name, cost in costs.items()}


def _acts(watched: Watched, url: str, read: Callable[[], Readings]) -> dict[str, float]:
    _wait_for_no_session(watched)
    ((synced,),) = watched.fetch(_SYNCED)
    committed = read()["commits"]
    with opened(url) as rw:
        costs = acts(rw, read)
    _wait_for_no_session(watched)
    ((synced_then,),) = watched.fetch(_SYNCED)
    costs["act: syncs per commit"] = (synced_then - synced) / (read()["commits"] - committed)
    return costs


def _logged(records: Sequence[tuple[str, int, int]]) -> Readings:
    counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
    for kind, count, size_bytes in records:
        manager, _, record = kind.partition("/")
        record = record.removesuffix("+INIT")
        counts["logged bytes per job"] += int(size_bytes)
        counts["commits"] += count if (manager, record) == ("Transaction", "COMMIT") else 0
        counts["rows written per job"] += count if manager == "Heap" and record in _ROWS else 0
        counts["rows moved per job"] += count if (manager, record) == ("Heap", "UPDATE") else 0
        counts["rows locked per job"] += count if (manager, record) == ("Heap", "LOCK") else 0
        counts["index entries per job"] += count if manager == "Btree" and record.startswith("INSERT") else 0
    return counts


def _wait_for_no_session(watched: Watched) -> None:
    """What a session did is told when it ends."""
    deadline = time.monotonic() + _DEADLINE_S
    while watched.fetch(_SESSIONS) != [(0,)]:
        assert time.monotonic() < deadline, "sessions do not end"
        time.sleep(0.01)
