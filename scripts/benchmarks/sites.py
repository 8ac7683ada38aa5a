"""Where the stores of one run of benchmarks stand: files below a folder, or databases of a server started for it.

The server is a real one on the same disk, with durability as it comes, for Redis as the store asks for it. Of the
settings of PostgreSQL that matter for its speed only `SETTINGS` differ from the defaults. Servers are reached through
their Unix socket, as by a program on their own machine.
"""

import contextlib
import dataclasses
import itertools
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

import click

from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import DATABASES, RedisServer

SQLITE: Final = "sqlite"
POSTGRES: Final = "postgres"
REDIS: Final = "redis"
STORES: Final = (SQLITE, POSTGRES, REDIS)

SETTINGS: Final = {"shared_buffers": "256MB"}
"""What every administrator sets. Nothing here may weaken durability."""
_REDIS_TOLD: Final = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "auto-aof-rewrite-percentage", "save")
_TOLD: Final = ("shared_buffers", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "max_wal_size")


class Site(Protocol):
    """Gives every measurement a store of its own."""

    @property
    def server(self) -> Mapping[str, Any] | None:
        """Version, connection and settings of the server; None where the store is a file."""
        ...

    def store(self) -> contextlib.AbstractContextManager[str]:
        """The URL of a store that does not exist yet; nothing of it is left afterwards."""
        ...


@contextlib.contextmanager
def opened_site(store: str, folder: Path) -> Iterator[Site]:
    """The site for that kind of store; its files lie below `folder`.

    Raises:
        click.ClickException: no server can lie there.
    """
    if store == SQLITE:
        yield SqliteSite(folder)
        return
    with contextlib.ExitStack() as stack:
        site: Site
        try:
            if store == POSTGRES:
                site = PostgresSite(stack.enter_context(PostgresServer(folder, SETTINGS)))
            else:
                site = RedisSite(stack.enter_context(RedisServer(folder)))
        except ValueError as refusal:
            raise click.ClickException(f"{refusal}, with --dir") from refusal
        yield site


@dataclasses.dataclass(frozen=True)
class SqliteSite:
    """A directory for each file, below `folder`."""

    folder: Path
    server: None = None

    @contextlib.contextmanager
    def store(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="bench-") as own:
            yield f"sqlite:///{own}/bench.db"


class PostgresSite:
    """A database for each store, all of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        settings = {name: server.execute(f"SHOW {name}")[0][0] for name in ("server_version", *_TOLD)}
        version = settings.pop("server_version")
        self.server: Mapping[str, Any] = {"version": version, "connection": "unix socket", "settings": settings}

    @contextlib.contextmanager
    def store(self) -> Iterator[str]:
        name = f"bench_{next(self._numbers)}"
        self._server.create_database(name)
        try:
            # The same URL, with the folder of its socket in the place of the host.
            yield self._server.url(name).replace("@127.0.0.1:", f"@{quote(str(self._server.folder), safe='')}:")
        finally:
            self._server.drop_database(name)


class RedisSite:
    """A database for each store, all of one server."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._numbers = itertools.cycle(range(DATABASES))
        version = server.execute("INFO", "server")["redis_version"]
        told = server.execute("CONFIG", "GET", *_REDIS_TOLD)
        settings = {name.decode(): value.decode() for name, value in told.items()}
        self.server: Mapping[str, Any] = {"version": version, "connection": "unix socket", "settings": settings}

    @contextlib.contextmanager
    def store(self) -> Iterator[str]:
        number = next(self._numbers)
        self._server.execute("FLUSHDB", database=number)
        try:
            yield self._server.socket_url(number)
        finally:
            self._server.execute("FLUSHDB", database=number)
