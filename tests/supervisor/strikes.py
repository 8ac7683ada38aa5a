"""Ends executors in the middle of the hand-off: an order is a file named like a crossing, and is carried out once.

order ─▶ file ─▶ the first process to come to the crossing takes it ─┬─ an executor kills itself
                                                                     └─ the parent kills the executor it is about
"""

import contextlib
import functools
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runwick.runtime import crossings, place
from runwick_supervisor import processes
from runwick_supervisor.executor import Executor

IN_EXECUTOR: Final = (
    "handoff.taken",
    "handoff.measuring",
    "handoff.beginning",
    "handoff.logging",
    "handoff.written",
    "handoff.answered",
)
"""In the order in which a run comes there."""
IN_PARENT: Final = ("handoff.announcing", "handoff.taking_back", "handoff.collecting")
CROSSINGS: Final = (*IN_EXECUTOR, *IN_PARENT)


def order(folder: Path, crossing: str) -> Path:
    """Have whoever comes to the crossing next carry it out; answers the file, which is gone as soon as it is."""
    path = folder / crossing
    path.touch()
    return path


def take(path: Path) -> bool:
    """Take the order away; False when there is none any more. It is given to one process alone."""
    try:
        os.unlink(path)  # noqa: PTH108 - many runs come here
    except FileNotFoundError:
        return False
    return True


def obey_as_executor(folder: Path) -> None:
    """For a zygote, whose executors inherit it."""
    for crossing in IN_EXECUTOR:
        crossings.on(crossing, functools.partial(_die, folder / crossing))


def obey_as_parent(folder: Path) -> Callable[[], None]:
    """For the parent; answers what undoes it."""
    stack = contextlib.ExitStack()
    for crossing in IN_PARENT:
        stack.callback(crossings.on(crossing, functools.partial(_kill, folder / crossing)))
    return stack.close


def _die(path: Path) -> None:
    if place.in_executor() and take(path):
        os.kill(os.getpid(), signal.SIGKILL)


def _kill(path: Path) -> None:
    """Kill the executor whose hand-off the parent is at, and see it dead before the parent goes on."""
    if take(path):
        executor = _concerned()
        processes.kill(executor.pidfd)
        death = select.poll()
        death.register(executor.pidfd, select.POLLIN)
        death.poll()


def _concerned() -> Executor:
    frame = sys._getframe()
    while not isinstance(executor := frame.f_locals.get("self"), Executor):
        assert frame.f_back is not None, "the crossing was reached outside of an executor's methods"
        frame = frame.f_back
    return executor
