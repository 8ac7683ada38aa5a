"""Keeps a server for one process and leaves nothing of it behind, however that process ends.

It is the parent of the server, so that neither the end of a thread nor a fork of the owner matters to it::

    owner ──command──▶ keeper ──executes──▶ server
      │   ◀───pid────    │
      └─ ends ─────────▶ └─ stops the server, kills what is left of it, removes the folder

Run as a program: ``keeper.py OWNER FOLDER USER``, where USER is the number of the user that commands run as. It reads
one command a line, a JSON array, and answers its process id; an empty line ends it. What commands say goes to the file
``log`` in the folder.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import psutil

STOP_S: Final = 5.0
"""How long the server may take to stop when everything ends."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_IPC_RMID: Final = 0

_libc: Final = ctypes.CDLL(None)


def main() -> None:
    owner, folder, user = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        watched = os.pidfd_open(owner)
        while os.getppid() == owner:
            readable, _, _ = select.select([sys.stdin, watched], [], [])
            if watched in readable or not (line := sys.stdin.readline().strip()):
                break
            _reap()
            print(_execute(json.loads(line), folder, user), flush=True)
    except (ProcessLookupError, BrokenPipeError):
        pass  # the owner has ended
    finally:
        _clear_away(folder)


def _execute(command: list[str], folder: Path, user: int) -> int:
    """Execute a command and answer its process id."""
    identity: dict[str, Any] = {}
    if os.getuid() != user:
        identity = {"user": user, "group": user, "extra_groups": []}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC", "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_end_with_parent,
            **identity,
        )
    process.returncode = 0  # its end is not waited for here
    return process.pid


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _clear_away(folder: Path) -> None:
    itself = psutil.Process()
    servers = itself.children()
    _send(signal.SIGQUIT, servers)
    _send(signal.SIGCONT, itself.children(recursive=True))  # the owner may have stopped some
    psutil.wait_procs(servers, STOP_S)
    left = itself.children(recursive=True)
    _send(signal.SIGKILL, left)
    psutil.wait_procs(left, STOP_S)
    _remove_shared_memory(folder / "data" / "postmaster.pid")
    shutil.rmtree(folder)


def _send(number: signal.Signals, processes: Iterable[psutil.Process]) -> None:
    """Send a signal to those of these that have not ended meanwhile."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _remove_shared_memory(record: Path) -> None:
    """Remove the segment that a killed server left, by the number that it wrote down."""
    if record.exists() and len(lines := record.read_text().splitlines()) > 6:
        _libc.shmctl(int(lines[6].split()[1]), _IPC_RMID, None)


if __name__ == "__main__":
    main()
