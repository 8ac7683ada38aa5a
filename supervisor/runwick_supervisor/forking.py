"""How a process is forked that is somebody else's child from the start: by way of another one, which ends at once.

    zygote ─ forks ─▶ middle ─ forks ─▶ executor
                        └─ ends ─▶ the executor is the child of whoever adopts the zygote's orphans

The compiled part does it without a copy of the zygote for the middle, and without a line of Python in it. The zygote is
waited for neither way: when `fork_away` returns in it, the middle is gone.
"""

import os
import warnings
from typing import Final, NamedTuple

from runwick_supervisor import processes
from runwick_supervisor.native import Library

_PID_BYTES: Final = 8


class Away(NamedTuple):
    """What came of it."""

    pid: int
    """Of the new process; 0 in that one."""
    middle: int
    """The pid of its first parent."""


def fork_away(library: Library | None) -> Away:
    """Fork; in the zygote and in the new process it returns.

    Raises:
        OSError: one of the two forks cannot be done; no new process is left, unless the middle was killed.
    """
    return Away(*library.fork_away()) if library is not None and library.forks_away else _through_python()


def _through_python() -> Away:
    reading, writing = os.pipe()
    try:
        middle = _fork()
        if middle == 0:
            own = os.getpid()
            if _fork_on(writing) == 0:
                return Away(0, own)
        os.close(writing)
        writing = -1
        told = os.read(reading, _PID_BYTES)
        _wait_for(middle)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    if (pid := int.from_bytes(told, signed=True)) <= 0:
        raise OSError(-pid, os.strerror(-pid) if pid else "the process between was killed")
    return Away(pid, middle)


def _fork_on(writing: int) -> int:
    """In the middle: fork, tell the zygote the pid or the negative of an errno, end. Answers 0, in the new process."""
    own = os.getpid()
    try:
        try:
            answer = _fork()
        except OSError as error:
            answer = -(error.errno or 1)
        if answer:
            os.write(writing, answer.to_bytes(_PID_BYTES, signed=True))
        return answer
    finally:
        if os.getpid() == own:
            processes.leave(0)


def _fork() -> int:
    """Fork. Threads that the import left are in the manifest's warning, so the interpreter need not warn each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _wait_for(middle: int) -> None:
    try:
        os.waitpid(middle, 0)
    except ChildProcessError:
        # The application waits for every child of its process; then the status is its own.
        return
