"""What Linux offers to a family of processes: orphans adopted, children that die with their parent, deaths confirmed.

A process is signalled and waited for through its pidfd, never through a bare number that may be somebody else's by
now. Nothing here knows what the processes are for.
"""

import asyncio
import collections
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, NoReturn

from setproctitle import setproctitle

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_SETTLE_S: Final = 0.0005

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
    """Take `die_with_parent` back. If this process stands still when its parent dies, the kernel wakes it: whatever it
    has to do then, it can do."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


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
    def kind(self) -> Literal["signal", "exit", "unknown"]:
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


def kill(pidfd: int) -> None:
    """SIGKILL; a process that is gone already is fine."""
    send(pidfd, signal.SIGKILL)


def send(pidfd: int, number: int) -> None:
    """Send a signal; a process that is gone already is fine."""
    try:
        signal.pidfd_send_signal(pidfd, number)
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


def is_stopped(pid: int) -> bool:
    """Whether a process stands still (SIGSTOP, a debugger); one that is gone does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return text[text.rindex(b")") + 2 : text.rindex(b")") + 3] in (b"T", b"t")


def descendants(pid: int) -> list[int]:
    """Everything that came from this process and lives, as far as the process table still shows whose it is.

    For a process that adopts orphans that is everything, as long as it is not dead itself.
    """
    children = collections.defaultdict(list)
    for process in process_table():
        if not process.is_zombie:
            children[process.parent].append(process.pid)
    found: list[int] = []
    unseen = [pid]
    while unseen:
        below = children.pop(unseen.pop(), [])
        found += below
        unseen += below
    return found


def kill_tree(pid: int, pidfd: int, *, within_s: float) -> None:
    """SIGKILL a process that adopts orphans, and everything that came from it. Blocks.

    It is stopped first, so that it starts nothing while its descendants are killed; they stay its own until it is dead
    itself, so none is missed. It is killed when none is left, at the latest after `within_s`.
    """
    send(pidfd, signal.SIGSTOP)
    until_s = time.monotonic() + within_s
    while (below := descendants(pid)) and time.monotonic() < until_s:
        for one in below:
            try:
                os.kill(one, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(_SETTLE_S)
    kill(pidfd)
