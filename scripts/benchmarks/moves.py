"""What happens to jobs inside of a store while it is measured: when each was claimed, and how often it was moved: into
a line, out of it, or to another due time.

A database with tables counts moves by a trigger of its own. Redis has none, but tells whoever listens every command
that a function runs; a thread reads along.
"""

import codecs
import contextlib
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import psycopg
import redis

from scripts.benchmarks.ground import Ground
from scripts.benchmarks.statements import sql

_TOLD: Final = re.compile(rb"^(\d+)\.(\d{3})\d* \[(\d+) lua\] \"ZADD\" \"rw:\{[^}]*\}:(w|line|leases)(?::|\")")
_QUOTED: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ID_BYTES: Final = 16


class Moved(NamedTuple):
    """All that were ever moved."""

    jobs: int
    moves: int
    """Of all of them together."""
    most: int
    """Of the one that was moved most."""


class Moves(Protocol):
    """What happened since the watch began."""

    def grants(self) -> list[tuple[int, int]]:
        """Jobs that were claimed: when, in milliseconds since the epoch, and how often each was moved; in order."""
        ...

    def moved(self) -> Moved: ...


@contextlib.contextmanager
def watched(ground: Ground) -> Iterator[Moves]:
    """Watch a store while this lasts."""
    if ground.is_redis:
        moves = RedisMoves(ground.client_url)
        try:
            yield moves
        finally:
            moves.close()
        return
    yield SqlMoves(ground)


class SqlMoves:
    """The same by statements; a grant shows when its attempt has ended."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        if ground.is_postgres:
            with psycopg.connect(ground.url) as connection:
                connection.execute(sql("watch_moves_postgres").encode())
        else:
            with contextlib.closing(sqlite3.connect(ground.file)) as own:
                own.executescript(sql("watch_moves_sqlite"))

    def grants(self) -> list[tuple[int, int]]:
        return [(at_ms, moves) for at_ms, moves in self._asked("grants")]

    def moved(self) -> Moved:
        ((jobs, moves, most),) = self._asked("moves")
        return Moved(jobs, moves, most)

    def _asked(self, statement: str) -> list[tuple[int, ...]]:
        if self._ground.is_postgres:
            with psycopg.connect(self._ground.url) as connection:
                return connection.execute(sql(f"{statement}_postgres").encode()).fetchall()
        with contextlib.closing(sqlite3.connect(self._ground.file)) as connection:
            return connection.execute(sql(f"{statement}_sqlite")).fetchall()


class RedisMoves:
    """The same by reading along, to be closed."""

    def __init__(self, url: str) -> None:
        pool: Any = redis.Redis.from_url(url, socket_timeout=None).connection_pool
        self._database = str(pool.connection_kwargs["db"]).encode()
        self._connection = pool.make_connection()
        self._connection.connect()
        self._connection.send_command("MONITOR")
        self._connection.read_response()
        self._claimed_ms: dict[bytes, int] = {}
        self._moves: Counter[bytes] = Counter()
        self._guard = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="moves", daemon=True)
        self._reader.start()

    def grants(self) -> list[tuple[int, int]]:
        with self._guard:
            return sorted((at_ms, self._moves[job]) for job, at_ms in self._claimed_ms.items())

    def moved(self) -> Moved:
        with self._guard:
            return Moved(len(self._moves), self._moves.total(), max(self._moves.values(), default=0))

    def close(self) -> None:
        """Stop reading along."""
        self._connection.disconnect()
        self._reader.join()

    def _read(self) -> None:
        with contextlib.suppress(redis.ConnectionError, OSError, ValueError):
            while True:
                self._hear(self._connection.read_response())

    def _hear(self, line: bytes) -> None:
        told = _TOLD.match(line)
        if told is None or told[3] != self._database:
            return
        at_ms = int(told[1]) * 1_000 + int(told[2])
        _, _, *pairs = _QUOTED.findall(line)
        members = [codecs.escape_decode(member)[0] for member in pairs[1::2]]
        with self._guard:
            for member in members:
                if told[4] == b"leases":
                    self._claimed_ms.setdefault(member, at_ms)
                else:
                    self._moves[member[_ID_BYTES:]] += 1
