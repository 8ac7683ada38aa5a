"""What an attempt costs: two readings of the process around it, at about 7 us for both.

    start   reset the peak (/proc/self/clear_refs) ▸ getrusage of the process and of its waited-for children ▸ clock
    end     clock ▸ both getrusage again ▸ resident memory (/proc/self/statm)

What was used before the attempt can be left where others see it, so that an attempt whose process dies has a cost too.

All figures are those of the whole process, so they mean an attempt only while the process runs one at a time and
nothing else. Where that does not hold, `Stopwatch` measures wall time and leaves the rest unknown. What cannot be read
(no /proc, no permission, another platform) is None; nothing here ever fails an attempt.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from runwick.contracts.ambient import Clock
from runwick.contracts.usage import Usage

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]

PROC_SELF: Final = Path("/proc/self")

_RESET_PEAK: Final = b"5"
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_FLOOR_SLACK_BYTES: Final = 16 * 1024 * 1024

End = Callable[[], Usage | None]
"""Called once when the attempt ends; answers what it cost."""


def unmeasured() -> End:
    """Measures nothing: recording is off."""
    return _nothing


def _nothing() -> None:
    return None


class Stopwatch:
    """Measures wall time alone, for attempts that share their process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def start(self) -> End:
        started_s = self._clock.steady_s()
        return lambda: Usage(wall_us=_microseconds(self._clock.steady_s() - started_s))


class Meter:
    """Measures attempts that have the process to themselves.

    The files are opened at the first attempt and kept open. /proc/self names the process that opened it, so
    descriptors inherited through a fork would read and reset the parent: a new process opens its own. The inherited
    ones are forgotten, not closed, because the number may be somebody else's by now.

    Args:
        clock: measures wall time.
        proc: where the kernel shows this process.
        leave: told, when an attempt begins, what had been used by then: the process's resource usage, that of its
            waited-for children, bytes and blocks allocated.
        allocations: answers the bytes and blocks that Python's allocators have handed out so far; None where nobody
            counts them.
    """

    def __init__(
        self,
        clock: Clock,
        proc: Path = PROC_SELF,
        *,
        leave: Callable[[Any, Any, tuple[int, int]], None] | None = None,
        allocations: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        self._clock = clock
        self._proc = proc
        self._leave = leave
        self._allocated = allocations or _uncounted
        self._counts = allocations is not None
        self._pid = -1
        self._clear_refs: int | None = None
        self._statm: int | None = None
        self._peak_floor_kib = 0

    def start(self) -> End:
        """Begin to measure an attempt; the answer ends it."""
        if resource is None:
            return Stopwatch(self._clock).start()
        if self._pid != os.getpid():
            self._open()
        peak_is_reset = self._reset_peak()
        before = resource.getrusage(resource.RUSAGE_SELF)
        children_before = resource.getrusage(resource.RUSAGE_CHILDREN)
        allocated = self._allocated()
        if self._leave is not None:
            self._leave(before, children_before, allocated)
        started_s = self._clock.steady_s()

        def end() -> Usage:
            wall_s = self._clock.steady_s() - started_s
            after = resource.getrusage(resource.RUSAGE_SELF)
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            allocated_after = self._allocated()
            resident_bytes = self._resident_bytes()
            counted = self._counts
            return Usage(
                wall_us=_microseconds(wall_s),
                cpu_user_us=_microseconds(after.ru_utime - before.ru_utime),
                cpu_system_us=_microseconds(after.ru_stime - before.ru_stime),
                cpu_children_us=_microseconds(
                    children.ru_utime + children.ru_stime - children_before.ru_utime - children_before.ru_stime
                ),
                rss_peak_bytes=self._peak_bytes(after.ru_maxrss, resident_bytes) if peak_is_reset else None,
                rss_end_bytes=resident_bytes,
                faults_minor=after.ru_minflt - before.ru_minflt,
                faults_major=after.ru_majflt - before.ru_majflt,
                switches_voluntary=after.ru_nvcsw - before.ru_nvcsw,
                switches_involuntary=after.ru_nivcsw - before.ru_nivcsw,
                allocated_bytes=allocated_after[0] - allocated[0] if counted else None,
                allocated_blocks=allocated_after[1] - allocated[1] if counted else None,
                allocations_by="counted" if counted else None,
            )

        return end

    def _open(self) -> None:
        self._pid = os.getpid()
        self._clear_refs = _open(self._proc / "clear_refs", os.O_WRONLY)
        self._statm = _open(self._proc / "statm", os.O_RDONLY)
        self._peak_floor_kib = self._find_peak_floor_kib()

    def _find_peak_floor_kib(self) -> int:
        """The part of ru_maxrss that no reset lowers, 0 in a process that was forked and not executed since.

        An executed process keeps the peak of the program image before it, e.g. that of a large process that started
        it. Peaks up to there would be the other program's.
        """
        if not self._reset_peak() or (resident := self._resident_bytes()) is None:
            return 0
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak_kib if peak_kib * 1024 > resident + _FLOOR_SLACK_BYTES else 0

    def _reset_peak(self) -> bool:
        if self._clear_refs is None:
            return False
        try:
            os.write(self._clear_refs, _RESET_PEAK)
        except OSError:
            return False
        return True

    def _peak_bytes(self, peak_kib: int, resident_bytes: int | None) -> int | None:
        if peak_kib <= self._peak_floor_kib:
            return None
        # ru_maxrss is in KiB on Linux, and nothing else has clear_refs. The kernel sums both figures loosely, the
        # peak more so: it may read a little lower than what is resident.
        return max(peak_kib * 1024, resident_bytes or 0)

    def _resident_bytes(self) -> int | None:
        if self._statm is None:
            return None
        try:
            return int(os.pread(self._statm, 64, 0).split(None, 2)[1]) * _PAGE_BYTES
        except (OSError, ValueError, IndexError):
            return None


def _uncounted() -> tuple[int, int]:
    return 0, 0


def _open(path: Path, flags: int) -> int | None:
    try:
        return os.open(path, flags)
    except OSError:
        return None


def _microseconds(seconds: float) -> int:
    """Whole microseconds; rounding of the kernel's sums can step back by one, an attempt's cost cannot."""
    microseconds = int(seconds * 1_000_000 + 0.5)
    return microseconds if microseconds > 0 else 0
