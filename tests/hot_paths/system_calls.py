"""Which system calls something makes, told by strace: of all threads and processes, in the order in which they came.

What a thread does to wait for another one or to get memory is left out: that is the load's doing.
"""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

PROJECT: Final = Path(__file__).parents[2]
SYNCS: Final = ("fsync", "fdatasync")

_DEADLINE_S: Final = 240.0
_MARK: Final = "hot path"
_LEFT_OUT: Final = {"futex", "sched_yield", "restart_syscall", "brk", "mmap", "munmap", "mremap", "mprotect", "madvise"}
_CALL: Final = re.compile(r"(\d+) +(\w+)\((.*)")
"""One call, or the beginning of one that another thread's interrupted; where it goes on nothing is counted."""
_MADE: Final = re.compile(r".*CLONE_THREAD.* = (\d+)")


class Call(NamedTuple):
    """One system call."""

    who: str
    """The thread that made it…"""
    of_main: bool
    """…and whether that belongs to the process that was started first, not to one of its descendants."""
    name: str
    what: str
    """Its arguments, each shown up to some length, and its answer."""


def mark() -> None:
    """Leave a call in the log that `between_marks` knows."""
    os.access(_MARK, os.F_OK)


class Traced(NamedTuple):
    """A program that has ended."""

    calls: Iterator[Call]
    said: bytes
    """On its standard output."""


def traced(command: Sequence[str], url: str, log: Path) -> Traced:
    """Execute a program that finds the store at this URL; `log` is made.

    Raises:
        subprocess.SubprocessError: it failed, or did not end in time.
    """
    strace = ["strace", "--follow-forks", "--string-limit=32", "--quiet=all", "--signal=none", f"--output={log}"]
    environment = {**os.environ, "RUNWICK_STORE": url}
    said = subprocess.run(
        [*strace, *command], cwd=PROJECT, env=environment, check=True, stdout=subprocess.PIPE, timeout=_DEADLINE_S
    ).stdout
    return Traced(_calls(log), said)


def between_marks(calls: Iterator[Call]) -> list[Counter[str]]:
    """By name, what the thread that left the marks called between the first and the second, the third and the fourth,
    …"""
    spans: list[Counter[str]] = []
    who = ""
    for call in calls:
        if _MARK in call.what:
            who = call.who
            spans.append(Counter())
        elif call.who == who:
            spans[-1][call.name] += 1
    return spans[::2]


def _calls(log: Path) -> Iterator[Call]:
    threads: set[str] = set()
    with log.open(errors="replace") as lines:
        for line in lines:
            if (found := _CALL.match(line)) is None:
                continue
            who, name, what = found.groups()
            threads = threads or {who}
            if who in threads and (made := _MADE.match(what)):
                threads.add(made[1])
            if name not in _LEFT_OUT:
                yield Call(who, who in threads, name, what)
