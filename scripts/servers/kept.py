"""What the servers here have in common: a folder, processes in the hands of a keeper, and a port that is free.

A keeper (``keeper.py``) is the parent of a server, so that it is gone with its owner however that ends. Run as root,
the server's processes belong to user 65534: PostgreSQL refuses to be root, and nothing needs to be.
"""

import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

NOBODY: Final = 65534
"""The user and group of a server's processes where root starts them."""

SHARED_MEMORY: Final = Path("/dev/shm")
ROOM_BYTES: Final = 1 << 30
"""How much must be free in shared memory for a server to lie there, where flushing to disk costs nothing."""

PATIENCE_S: Final = 30.0
"""How long a server may take to start or to end."""
LOOK_S: Final = 0.005
"""How often one looks whether it has started."""

_PORTS: Final = range(20_000, 32_000)
"""Below the ports that the kernel gives to clients, so that none takes the port while the server is stopped."""


class Kept:
    """The folder and the processes of one server. They are there from `open` until `close`, or until the owner ends.

    Args:
        name: what the folder's name begins with.
        place: where the folder is made; by default in shared memory where there is room, else where temporary files
            are. When root opens it, everybody must be able to enter.
    """

    def __init__(self, name: str, place: Path | None) -> None:
        self._name: Final = name
        self._place: Final = place or _roomy_place()
        self._user: Final = os.getuid() or NOBODY

    @property
    def is_of_another_user(self) -> bool:
        """Whether the processes belong to somebody else than their owner's user."""
        return self._user != os.getuid()

    def open(self) -> None:
        """Make the folder and start the keeper.

        Raises:
            ValueError: the processes' user could not enter the folder.
        """
        if self.is_of_another_user and not is_open_to_all(self._place):
            raise ValueError(f"user {self._user} cannot enter {self._place}; name a folder that everybody can enter")
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self._name}-", dir=self._place))
        self.give(self.folder)
        keeper = Path(__file__).with_name("keeper.py")
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(keeper), str(os.getpid()), str(self.folder), str(self._user)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for the owner; in its session, which a supervisor in this process spares
        )

    def close(self) -> None:
        """Stop what runs, whatever state it is in, and remove the folder."""
        with self._keeper as keeper:
            assert keeper.stdin is not None
            keeper.stdin.write("\n")
        if keeper.returncode:
            raise RuntimeError(f"{self.folder} could not be removed; see standard error")

    def give(self, path: Path) -> None:
        """Make a file or folder the processes' own."""
        os.chown(path, self._user, self._user if self.is_of_another_user else -1)

    def secret(self, name: str, text: str) -> Path:
        """A file in the folder that only the processes can read."""
        path = self.folder / name
        path.touch(0o600)
        self.give(path)
        path.write_text(text)
        return path

    def execute(self, command: Sequence[str]) -> tuple[int, int]:
        """Have the keeper execute a command; answers its process id, and a descriptor that is readable at its end."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(f"{json.dumps(command)}\n")
        self._keeper.stdin.flush()
        pid = int(self._keeper.stdout.readline())
        return pid, os.pidfd_open(pid)

    def pids(self) -> list[int]:
        """Of every process that was executed and everything that it started."""
        family = psutil.Process(self._keeper.pid).children(recursive=True)
        return sorted(one.pid for one in family if _is_alive(one))

    def log(self) -> str:
        """What the processes said so far."""
        return (self.folder / "log").read_text(errors="replace")


def free_port() -> int:
    """A port of loopback that nobody has."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")


def is_open_to_all(path: Path) -> bool:
    """Whether every user may enter a folder."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def end(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to these processes and wait for their end."""
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            signal.pidfd_send_signal(process, number)
            if not is_readable(process, PATIENCE_S):
                raise RuntimeError(f"process {pid} did not end")
        except ProcessLookupError:
            pass
        finally:
            os.close(process)


def is_readable(descriptor: int, wait_s: float) -> bool:
    """Whether a descriptor can be read, now or within some seconds."""
    return bool(select.select([descriptor], [], [], wait_s)[0])


def _roomy_place() -> Path:
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= ROOM_BYTES:
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
