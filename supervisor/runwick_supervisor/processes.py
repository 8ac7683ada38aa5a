"""What Linux offers to a family of processes: orphans adopted, children that die with their parent, deaths confirmed.

A process is signalled and waited for through its pidfd, never through a bare number that may be somebody else's by
now. Nothing here knows what the processes are for.
"""

import asyncio
import ctypes
import os
import signal
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from setproctitle import setproctitle

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_libc: Final = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` dies; end at once when it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def outlive_parent() -> None:
    """Take `die_with_parent` back."""
    _prctl(_PR_SET_PDEATHSIG, 0)


def catch_stop_signals() -> None:
    """Let TERM and INT do nothing here. They are caught and not ignored: ignoring is inherited by what is executed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _do_nothing)


def _do_nothing(*_: object) -> None: ...


def set_title(title: str) -> None:
    """Show `title` in process lists. It must never hold a store's URL."""
    setproctitle(title)


def leave(status: int) -> NoReturn:
    """End at once: no exit handlers, no thread is waited for. For forked processes, whose handlers are not theirs."""
    os._exit(status)


class Ending(NamedTuple):
    """How a process ended; neither is known when somebody else took its status."""

    signal: int | None = None
    status: int | None = None

    @property
    def kind(self) -> str:
        """``signal``, ``exit`` or ``unknown``."""
        if self.signal is not None:
            return "signal"
        return "unknown" if self.status is None else "exit"

    def __str__(self) -> str:
        if self.signal is not None:
            return f"killed by {_signal_name(self.signal)}"
        return "ended in an unknown way" if self.status is None else f"exited with status {self.status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def reap(pidfd: int) -> Ending | None:
    """Take the status of a child; None while it lives. A status that somebody else took is an unknown ending."""
    try:
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return Ending()
    if result is None:
        return None
    return Ending(status=result.si_status) if result.si_code == os.CLD_EXITED else Ending(signal=result.si_status)


def kill(pidfd: int) -> None:
    """SIGKILL; a process that is gone already is fine."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return


async def readable(descriptor: int, timeout_s: float | None = None) -> None:
    """Wait until `descriptor` can be read: for a pidfd, until the process is dead.

    Raises:
        TimeoutError: it could not within `timeout_s`.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        async with asyncio.timeout(timeout_s):
            await ready
    finally:
        loop.remove_reader(descriptor)


class Process(NamedTuple):
    """One row of the process table."""

    pid: int
    is_zombie: bool
    """It is dead and waits for its parent to take its status."""
    parent: int
    session: int


def process_table() -> Iterator[Process]:
    """Every process that /proc shows, zombies included; those that vanish meanwhile are left out."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - a third of the time, and there may be thousands
        if not name.isdigit():
            continue
        try:
            descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            text = os.read(descriptor, 4096)
        except OSError:
            continue
        finally:
            os.close(descriptor)
        # The name stands in brackets and may hold anything, brackets too: state, parent, group, session follow it.
        state, parent, _, session = text[text.rindex(b")") + 2 :].split(maxsplit=4)[:4]
        yield Process(int(name), state == b"Z", int(parent), int(session))
