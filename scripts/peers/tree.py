"""The processes of one system's workers: started together, watched, killed in part, and gone for certain at the end.

The harness adopts what a killed parent leaves behind (it is a subreaper), so that orphans are seen and ended as well.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import psutil

from scripts.peers.system import PROJECT, Place, System

STOP_S: Final = 2.0
"""How long workers may take to end after SIGTERM: nobody needs what they would still tidy up."""
_PR_SET_CHILD_SUBREAPER: Final = 36


def adopt_orphans() -> None:
    """Let processes whose parent is gone become this one's children."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Tree:
    """The main processes of a system and everything that they start; a context manager."""

    def __init__(self, system: System, place: Place) -> None:
        self._commands = system.workers(place)
        self._variables = place.variables
        self._log: Final = place.folder / "workers.log"
        self._mains: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Tree":
        self.start(self._commands)
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self, commands: Sequence[Sequence[str]]) -> None:
        """Start main processes with these commands."""
        with self._log.open("ab") as log:
            for command in commands:
                self._mains.append(
                    subprocess.Popen(
                        command,
                        cwd=PROJECT,
                        env=self._variables,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )

    @property
    def mains(self) -> list[int]:
        """The main processes that were started and have not ended."""
        return [main.pid for main in self._mains if main.poll() is None]

    def members(self) -> set[psutil.Process]:
        """Every process that lives now: main processes, what they started, and orphans."""
        found: set[psutil.Process] = set()
        for child in _children_of_other_sessions():
            with contextlib.suppress(psutil.NoSuchProcess):
                found |= {child, *child.children(recursive=True)}
        return {process for process in found if _lives(process)}

    def kill(self, pid: int) -> None:
        """SIGKILL for one process, and see it gone."""
        os.kill(pid, signal.SIGKILL)
        for main in self._mains:
            if main.pid == pid:
                main.wait()

    def kill_mains(self) -> None:
        """SIGKILL for all main processes at once."""
        for pid in self.mains:
            os.kill(pid, signal.SIGKILL)
        for main in self._mains:
            main.wait()

    def restart(self, number: int) -> None:
        """Start so many main processes in the place of those that were killed, as a process manager does."""
        self.start(self._commands[:number])

    def stop(self) -> None:
        """SIGTERM for the main processes, some time, then SIGKILL for all that is left."""
        for main in self._mains:
            if main.poll() is None:
                main.terminate()
        until_s = time.monotonic() + STOP_S
        while self.mains and time.monotonic() < until_s:
            self.members()
            time.sleep(0.02)
        while left := self.members():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.01)
            self._reap()
        for main in self._mains:
            main.wait()

    def last_words(self) -> str:
        """What the workers said last, for whoever wonders why they stall."""
        lines = self._log.read_text(errors="replace").split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "nothing")

    @property
    def log(self) -> Path:
        """The file with all that they said."""
        return self._log

    def _reap(self) -> None:
        """Take note of the ends of adopted orphans."""
        mains = {main.pid for main in self._mains}
        for process in _children_of_other_sessions():
            if process.pid not in mains:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)


def _children_of_other_sessions() -> list[psutil.Process]:
    """Children that workers are, or were started by: whatever else the harness starts stays in its own session."""
    own, found = os.getsid(0), []
    for child in psutil.Process().children():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(child.pid) != own:
                found.append(child)
    return found


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """CPU time of these processes so far, with that of those of their children that have ended."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def pss_bytes(processes: Iterable[psutil.Process]) -> int:
    """Memory of these processes, where a shared page counts in parts."""
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
