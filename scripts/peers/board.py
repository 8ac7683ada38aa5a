"""The board on which every worker process of every system counts what it has done, ours and theirs alike.

A file that all of them map, named by the environment variable ``BENCH_BOARD``. Each thread that runs handlers takes a
slot of 64 bytes when it first counts, under a lock on the file, and from then on writes it alone: how many handlers
have ended, their CPU time, and when the last one ended, on the steady clock that all processes share. So the harness
may look seldom and still knows to the microsecond when the last of N jobs was over. What happens rarely (a job that
began, a delay) is a line in the file beside it, which is only ever appended to.

Standard library alone: this module is also imported in the environments of the other systems.
"""

import fcntl
import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

VARIABLE: Final = "BENCH_BOARD"
SLOTS: Final = 16_384
"""Threads that may ever count in one measurement: a system that forks for every job needs one for each."""

_WORDS: Final = 8
"""Of 8 bytes in a slot: pid, handlers ended, their CPU nanoseconds, end of the first and of the last one."""
_PID, _ENDED, _CPU, _FIRST, _LAST = range(5)
_BYTES: Final = 8 * _WORDS * (SLOTS + 1)
"""Of the whole; in the place of slot 0 stands how many slots are taken."""


class Standing(NamedTuple):
    """What the board says at one moment."""

    at_ns: int
    """The moment, on the steady clock."""
    ended: int
    cpu_ns: int
    processes: int
    """How many processes have ended a handler."""
    first_ns: int
    """When the first handler ended; 0 before that."""
    last_ns: int


class Board:
    """The harness's view: a new, empty board in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path: Final = folder / "board"
        self._lines: Final = _lines(self.path)
        self.path.write_bytes(bytes(_BYTES))
        self._lines.touch()
        with self.path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)
        self._words = memoryview(self._map).cast("Q")

    def close(self) -> None:
        """Let go of the file, which stays."""
        self._words.release()
        self._map.close()

    def standing(self) -> Standing:
        """Read all slots."""
        end = _WORDS * (1 + self._words[0])
        at_ns = time.monotonic_ns()
        columns = [self._words[_WORDS + word : end : _WORDS] for word in range(5)]
        pids, ended, cpu_ns, first, last = (list(column) for column in columns)
        firsts = [at for at in first if at]
        return Standing(
            at_ns=at_ns,
            ended=sum(ended),
            cpu_ns=sum(cpu_ns),
            processes=len({pid for pid, count in zip(pids, ended, strict=True) if count}),
            first_ns=min(firsts, default=0),
            last_ns=max(last, default=0),
        )

    def lines(self, word: str) -> list[list[int]]:
        """The numbers of every line that begins with this word, in their order."""
        told = self._lines.read_text().splitlines()  # every line was written by one call, so none is ever in part
        return [[int(number) for number in line.split()[1:]] for line in told if line.startswith(f"{word} ")]


class Writer:
    """A worker's view. One for each process; its methods may be called by any thread."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR)
        self._lines = os.open(_lines(path), os.O_WRONLY | os.O_APPEND)
        self._words = memoryview(mmap.mmap(self._file, _BYTES)).cast("Q")
        self._places: dict[int, int] = {}
        os.register_at_fork(after_in_child=self._places.clear)

    def count(self, cpu_ns: int = 0) -> None:
        """A handler has ended, now."""
        words, place = self._words, self._places.get(threading.get_ident()) or self._take()
        now_ns = time.monotonic_ns()
        words[place + _CPU] += cpu_ns
        words[place + _LAST] = now_ns
        if not words[place + _ENDED]:
            words[place + _FIRST] = now_ns
        words[place + _ENDED] += 1

    def tell(self, word: str, *numbers: int) -> None:
        """Append a line."""
        os.write(self._lines, f"{word} {' '.join(map(str, numbers))}\n".encode())

    def _take(self) -> int:
        # A descriptor of its own: locks belong to the open file, which a fork shares with its parent.
        own = os.open(f"/proc/self/fd/{self._file}", os.O_RDWR)
        try:
            fcntl.flock(own, fcntl.LOCK_EX)
            taken = struct.unpack("Q", os.pread(own, 8, 0))[0] + 1
            if taken > SLOTS:
                raise RuntimeError(f"more than {SLOTS} threads count on one board")
            place = int(_WORDS * taken)
            self._words[place + _PID] = os.getpid()
            self._words[0] = taken
        finally:
            os.close(own)
        self._places[threading.get_ident()] = place
        return place


def writer() -> Writer:
    """The writer of the board that the environment names."""
    return Writer(Path(os.environ[VARIABLE]))


def _lines(path: Path) -> Path:
    return path.with_suffix(".lines")
