"""What measures the attempts of an executor: the compiled part, in one call before and one after each, or the meter of
`runwick.execution.metering` where there is none. Both say the same; what was used before an attempt is left in the
control area, so that one whose executor dies has a cost too.
"""

import functools
import os
import struct
import sys
from collections.abc import Callable
from typing import Final

from runwick.contracts.usage import Usage
from runwick.execution.metering import PROC_SELF, End, Meter
from runwick.runtime.ambient import SystemClock
from runwick_supervisor.control import allocations
from runwick_supervisor.executor_end import ExecutorEnd, moved_away
from runwick_supervisor.native import Library

_COST: Final = struct.Struct("12q")
"""What the compiled part writes, in the order of `Usage`; -1 is what cannot be known."""


def measuring(end: ExecutorEnd, library: Library | None, *, count_allocations: bool) -> Callable[[], End]:
    """What is called when an attempt of this process begins; its answer is called when it ends. Once.

    Args:
        end: whose control area is written.
        library: the compiled part, where it is used.
        count_allocations: whether it should count them; where that cannot be done, standard error says so.
    """
    counts = library is not None and count_allocations and _counts_allocations(library, end)
    if library is not None:
        try:
            return CompiledMeter(library, end, counts=counts).start
        except OSError as error:
            print(f"attempts are measured without the compiled part: {error}", file=sys.stderr)
    count = functools.partial(allocations, end.memory) if counts else None
    return Meter(SystemClock(), leave=end.control.baseline, allocations=count).start


def _counts_allocations(library: Library, end: ExecutorEnd) -> bool:
    try:
        library.count_allocations(end.memory)
    except OSError as error:
        print(f"allocations are not counted: {error}", file=sys.stderr)
        return False
    return True


class CompiledMeter:
    """As `runwick.execution.metering.Meter`, by the compiled part. One for a process, which was forked and executed
    nothing since: its peak has no floor."""

    def __init__(self, library: Library, end: ExecutorEnd, *, counts: bool) -> None:
        self._cost = bytearray(_COST.size)
        clear_refs, statm = _opened("clear_refs", os.O_WRONLY), _opened("statm", os.O_RDONLY)
        library.read_usage(clear_refs, statm, end.memory, self._cost)
        self._begin = library.start_usage
        self._finish = library.end_usage
        self._counts = counts
        self._end: End = self._ended

    def start(self) -> End:
        """Begin to measure an attempt; the answer ends it."""
        self._begin()
        return self._end

    def _ended(self) -> Usage:
        self._finish()
        wall, user, system, children, peak, end, minor, major, voluntary, involuntary, allocated, blocks = (
            _COST.unpack_from(self._cost)
        )
        counts = self._counts
        return Usage(
            wall_us=wall,
            cpu_user_us=user,
            cpu_system_us=system,
            cpu_children_us=children,
            rss_peak_bytes=peak if peak >= 0 else None,
            rss_end_bytes=end if end >= 0 else None,
            faults_minor=minor,
            faults_major=major,
            switches_voluntary=voluntary,
            switches_involuntary=involuntary,
            allocated_bytes=allocated if counts else None,
            allocated_blocks=blocks if counts else None,
            allocations_by="counted" if counts else None,
        )


def _opened(name: str, flags: int) -> int:
    """A file of this process's in /proc; -1 where there is none."""
    try:
        # Out of reach: a handler that closes it, and then opens another one under its number, would be written into.
        return moved_away(os.open(PROC_SELF / name, flags))
    except OSError:
        return -1
