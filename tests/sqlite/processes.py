"""Other processes for tests: forked, talking to the test line by line, never left behind."""

import contextlib
import json
import os
import select
import signal
import socket
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

DEADLINE_S = 30.0


def open_files() -> list[str]:
    """What this process's descriptors point to."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that read the directory
            found.append(os.readlink(descriptor))  # noqa: PTH115 - pipes and sockets are no paths
    return sorted(found)


class Peer:
    """One end of the conversation."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lines = end.makefile("r")

    def say(self, word: object) -> None:
        self._end.sendall(json.dumps(word).encode() + b"\n")

    def hear(self) -> Any:
        """The other's next word; a test that waits longer than `DEADLINE_S` fails."""
        line = self._lines.readline()
        assert line, "the other process ended without a word"
        return json.loads(line)

    def silent(self) -> bool:
        """Whether there is nothing to hear now."""
        return not select.select([self._end], [], [], 0)[0]

    def close(self) -> None:
        self._lines.close()
        self._end.close()


class Child(Peer):
    """A forked process that runs ``work(peer)`` and ends. ``with`` kills what is left of it."""

    def __init__(self, work: Callable[[Peer], object]) -> None:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.settimeout(DEADLINE_S)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads are what is tested
            self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _live(work, Peer(theirs))
        theirs.close()
        super().__init__(ours)
        self._status: int | None = None

    def end(self) -> int:
        """Wait for its end and answer its exit code."""
        if self._status is None:
            self._status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(self._status)

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is None:
            if kind is not None:
                os.kill(self.pid, signal.SIGKILL)
            code = self.end()
            assert kind is not None or code == 0, f"the other process ended with {code}"
        self.close()


def _live(work: Callable[[Peer], object], peer: Peer) -> None:
    code = 1
    try:
        work(peer)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
