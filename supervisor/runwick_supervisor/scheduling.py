"""How the kernel's scheduler is to treat an executor: its niceness and its core.

An executor leads a session of its own. Where the kernel groups processes by session (autogroup), niceness compares
within a session alone, so the group is told as well. Threads and processes that it starts later inherit both.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import NamedTuple


class Scheduling(NamedTuple):
    """What was asked for; by default nothing changes."""

    nice: int = 0
    """How far it steps back for others, on top of what it was forked with."""
    pinned: bool = False
    """Whether it keeps to one of the cores that it may use."""

    def apply(self, number: int) -> None:
        """Have it for this process, an executor of this number that leads its session and is single-threaded."""
        if self.nice:
            niceness = os.nice(self.nice)
            with contextlib.suppress(OSError):  # a kernel without such groups, or one that will not be told now
                Path("/proc/self/autogroup").write_text(str(niceness))
        if self.pinned:
            cores = sorted(os.sched_getaffinity(0))
            try:
                os.sched_setaffinity(0, {cores[(number - 1) % len(cores)]})
            except OSError as error:  # it works on any core; refused again for each successor, it would never work
                print(f"executor {number} is not pinned: {error}", file=sys.stderr)
