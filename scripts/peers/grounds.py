"""The servers that everybody shares, and an empty place on them for every measurement.

They are those of our own benchmarks: PostgreSQL with the durability that it comes with, Redis with ``appendfsync
always``, files on the same disk. PostgreSQL is reached through its socket and Redis on loopback, by everybody.
"""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from scripts.benchmarks.sites import SETTINGS, PostgresSite, RedisSite
from scripts.peers.board import Board
from scripts.peers.system import Place, Store, System
from scripts.servers.kept import SHARED_MEMORY
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from scripts.servers.variables import variables


class Grounds:
    """Starts a server when a system first needs it; a context manager that leaves nothing behind.

    Args:
        folder: where all files lie; a real disk, since durability is part of what is measured.
    """

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._stack = contextlib.ExitStack()
        self._postgres: PostgresServer | None = None
        self._redis: RedisServer | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> "Grounds":
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def postgres(self) -> PostgresServer:
        """The one server with all databases."""
        if self._postgres is None:
            self._postgres = self._stack.enter_context(PostgresServer(self.folder, SETTINGS))
        return self._postgres

    @property
    def redis(self) -> RedisServer:
        """The one server; everybody has its database 0, which is emptied between."""
        if self._redis is None:
            self._redis = self._stack.enter_context(RedisServer(self.folder))
        return self._redis

    def told(self) -> dict[str, Any]:
        """Version and settings of the servers that were started, by store."""
        told: dict[str, Any] = {}
        if self._postgres:
            told["postgres"] = dict(PostgresSite(self._postgres).server)
        if self._redis:
            told["redis"] = {**RedisSite(self._redis).server, "connection": "loopback"}
        return told

    def server_pids(self, store: Store) -> list[int]:
        """Every process of that store's server; none where it is a file."""
        if store == "postgres":
            return self.postgres.pids()
        return [self.redis.pid] if store == "redis" else []

    @contextlib.contextmanager
    def place(self, system: System) -> Iterator[Place]:
        """An empty store for that system and a new board; nothing of them is left afterwards."""
        with contextlib.ExitStack() as stack:
            own = _made(stack, self.folder)
            # Not on the disk: a handler must not wait until a page of the board is written out.
            shared = _made(stack, SHARED_MEMORY if SHARED_MEMORY.is_dir() else self.folder)
            board = stack.enter_context(contextlib.closing(Board(shared)))
            url, names = stack.enter_context(self._opened(system.store, own))
            yield Place(url, own, board, {**names, "RUNWICK_RUN_DIR": str(own)})

    def _opened(self, store: Store, own: Path) -> contextlib.AbstractContextManager[tuple[str, Mapping[str, str]]]:
        if store == "sqlite":
            return self._file(own)
        return self._postgres_database() if store == "postgres" else self._redis_database()

    @contextlib.contextmanager
    def _file(self, own: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
        path = own / "bench.db"
        yield str(path), {"SQLITE_PATH": str(path), "RUNWICK_STORE": f"sqlite:///{path}"}

    @contextlib.contextmanager
    def _postgres_database(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        name = f"peers_{next(self._numbers)}"
        self.postgres.create_database(name)
        socket = quote(str(self.postgres.folder), safe="")
        url = self.postgres.url(name).replace("@127.0.0.1:", f"@{socket}:")
        try:
            yield url, {**variables(url), "RUNWICK_STORE": url}
        finally:
            self.postgres.drop_database(name)

    @contextlib.contextmanager
    def _redis_database(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        url = self.redis.url(0)
        self.redis.execute("FLUSHALL")
        try:
            yield url, {"REDIS_URL": url, "RUNWICK_STORE": url}
        finally:
            self.redis.execute("FLUSHALL")


def _made(stack: contextlib.ExitStack, folder: Path) -> Path:
    """A new folder in that one, for as long as the stack lasts."""
    own = Path(tempfile.mkdtemp(dir=folder, prefix="runwick-peers-"))
    stack.callback(shutil.rmtree, own, ignore_errors=True)
    return own
