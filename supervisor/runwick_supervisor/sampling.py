"""What the parent sees of an executor's memory, CPU time and dead children while it lives, and when that, or its age,
is too much.

Read from descriptors that were opened at its birth, so the figures are never another process's: after its death they
can no longer be read. What cannot be read is None, and a limit on it is then not enforced. What an executor was forked
with is shared with the zygote and does not count against its limits.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from runwick.config.options import ExecutorOptions

PROC: Final = Path("/proc")

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")
_AMOUNT_MAX: Final = 2**53 - 1
_LEFT_DEAD_MAX: Final = 64


class Sample(NamedTuple):
    """One reading."""

    rss_bytes: int
    cpu_us: int
    """Of its whole life, user and system; in steps of 10 ms."""


class Probe:
    """The open files of one process."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._statm = _open(proc / str(pid) / "statm")
        self._stat = _open(proc / str(pid) / "stat")
        self._status = _open(proc / str(pid) / "status")
        self._children = _open(proc / str(pid) / "task" / str(pid) / "children")
        self._proc = proc
        self.base_bytes: int | None = None
        """What it had when it was forked; None before `settle`."""
        self.last: Sample | None = None

    def settle(self) -> None:
        """It is ready, and has what it was forked with."""
        sample = self.sample()
        self.base_bytes = None if sample is None else sample.rss_bytes

    def sample(self) -> Sample | None:
        """Read it now; None when that cannot be done."""
        try:
            rss_bytes = int(_text(self._statm).split()[1]) * _PAGE_BYTES
            # After the name in brackets, which may hold anything: state is the 3rd field, user time the 14th.
            fields = _text(self._stat).rpartition(b")")[2].split()
            cpu_us = (int(fields[11]) + int(fields[12])) * _TICK_US
        except (OSError, ValueError, IndexError):
            return None
        if not 0 <= rss_bytes <= _AMOUNT_MAX or not 0 <= cpu_us <= _AMOUNT_MAX:
            return None
        self.last = Sample(rss_bytes, cpu_us)
        return self.last

    def growth_bytes(self) -> int | None:
        """How much more it had at the last reading than what it was forked with."""
        return None if self.last is None or self.base_bytes is None else self.last.rss_bytes - self.base_bytes

    def peak_bytes(self) -> int | None:
        """Its peak now. An executor that records usage resets it at the beginning of each attempt."""
        try:
            for line in _text(self._status).splitlines():
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
        except (OSError, ValueError, IndexError):
            pass
        return None

    def catches(self, number: int) -> bool:
        """Whether it handles this signal, so that it does not die of it; also where that cannot be read."""
        try:
            for line in _text(self._status).splitlines():
                if line.startswith(b"SigCgt:"):
                    return bool(int(line.split()[1], 16) >> number - 1 & 1)
        except (OSError, ValueError, IndexError):
            pass
        return True

    def leaves_too_many_dead(self) -> bool:
        """Whether it has more than 64 dead children that nobody has waited for: its handlers' own, or orphans of theirs
        that it adopted. Which is which cannot be known, so it must not take their statuses itself."""
        try:
            children = _text(self._children).split()
        except OSError:  # it is dead itself, or the kernel does not list children
            return False
        # As many as fit into one reading; the last number may be cut off there.
        return len(children) > _LEFT_DEAD_MAX and sum(map(self._is_dead, children)) > _LEFT_DEAD_MAX

    def _is_dead(self, pid: bytes) -> bool:
        try:
            text = (self._proc / pid.decode() / "stat").read_bytes()
        except OSError:
            return False
        return text.rpartition(b")")[2].split()[:1] == [b"Z"]

    def close(self) -> None:
        for descriptor in (self._statm, self._stat, self._status, self._children):
            if descriptor is not None:
                os.close(descriptor)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None


def _text(descriptor: int | None) -> bytes:
    if descriptor is None:
        raise OSError("it was never opened")
    return os.pread(descriptor, 4096, 0)


class Limits:
    """What executors may become before they are replaced."""

    def __init__(self, options: ExecutorOptions) -> None:
        self.hard_bytes = options.memory_hard
        self._soft_bytes = options.memory_soft
        self._attempts = options.recycle_attempts
        self._age_s = None if options.recycle_age is None else options.recycle_age.total_seconds()

    @property
    def are_set(self) -> bool:
        """Whether there is any beside the age, which time alone wears out."""
        return self._soft_bytes is not None or self.hard_bytes is not None or self._attempts is not None

    def is_beyond(self, growth_bytes: int | None) -> bool:
        """Whether it must be killed."""
        return self.hard_bytes is not None and growth_bytes is not None and growth_bytes > self.hard_bytes

    @property
    def of_memory(self) -> str:
        """The option by which they are replaced for their memory; without a soft limit the hard one does that too."""
        return "memory_hard" if self._soft_bytes is None else "memory_soft"

    def is_heavy(self, growth_bytes: int | None) -> bool:
        """Whether it should be replaced for its memory when it is free."""
        most_bytes = self._soft_bytes if self._soft_bytes is not None else self.hard_bytes
        return most_bytes is not None and growth_bytes is not None and growth_bytes > most_bytes

    def worn(self, growth_bytes: int | None, attempts: int, age_s: float) -> str | None:
        """Why it should be replaced when it is free; None while it need not."""
        if growth_bytes is not None and self.is_heavy(growth_bytes):
            return f"it grew by {growth_bytes >> 20} MiB"
        if self._attempts is not None and attempts >= self._attempts:
            return f"it ended {attempts} attempts"
        if self._age_s is not None and age_s >= self._age_s:
            return f"it is {age_s:.0f} s old"
        return None
