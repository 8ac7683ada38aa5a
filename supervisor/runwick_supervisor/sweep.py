"""Kills what dead executors left behind: nothing a handler started outlives the executor that ran it.

    executor dies ─▶ its process group is killed ─▶ what had left the group arrives here as an orphan ─▶ killed, reaped

Executors adopt the orphans of their own handlers, so whatever arrives at the supervisor belonged to an executor that
is dead. Spared are the processes named by the caller and everything in the supervisor's own session, which an
executor's descendants cannot be in. What arrives and is dead, whoever it was, only has its status taken (`bury_dead`).
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Collection, Container
from typing import Final

from runwick_supervisor.processes import process_table

_PAUSE_FIRST_S: Final = 0.001
_PAUSE_MAX_S: Final = 0.05


def kill_group(leader: int) -> None:
    """SIGKILL every process of the group that `leader` leads; call it while `leader` is not reaped yet."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # Nobody left, or only processes that changed their user: the sweep finds what it may kill.
        return


def find_orphans(spared: Container[int]) -> list[int]:
    """Adopted children that are not `spared`. Reads the whole process table: some microseconds for each process."""
    return orphans_of(os.getpid(), spared)


def orphans_of(parent: int, spared: Container[int]) -> list[int]:
    """`find_orphans` for another process, which adopts them."""
    session = os.getsid(parent)
    return [
        process.pid
        for process in process_table()
        if process.parent == parent and process.session != session and process.pid not in spared
    ]


def kill_child(pid: int) -> bool:
    """SIGKILL a child and take its status if it is dead already; False when there is no such child to be killed."""
    try:
        # A child that nobody has waited for keeps its number; what is no child of this process any more is a stranger.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
    except (ProcessLookupError, ChildProcessError, PermissionError):
        return False
    return True


def bury_dead(spared: Container[int]) -> None:
    """Take the statuses of dead children, whatever session they are of, as far as the first one that is `spared`, whose
    status somebody else takes first. Some microseconds while there is none."""
    with contextlib.suppress(ChildProcessError):
        # Looked at before it is taken, so that nobody else's status is ever taken.
        while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and dead.si_pid not in spared:
            os.waitid(os.P_PID, dead.si_pid, os.WEXITED | os.WNOHANG)


async def sweep(spared: Container[int], turn: asyncio.Lock) -> None:
    """Kill orphans until none is left; the children of a killed one arrive in the next round.

    It kills while it holds `turn`. Whoever brings children into this process holds it too, from before they arrive
    until they are named in `spared`: so a child that was found before it was named is not misunderstood.
    """
    pause_s = _PAUSE_FIRST_S
    while orphans := await _orphans(spared):
        async with turn:
            killed = [pid for pid in orphans if pid not in spared and kill_child(pid)]
        if not killed:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


async def _orphans(spared: Container[int]) -> list[int]:
    """`find_orphans`, on a thread. Where descriptors, threads or memory have run out it is tried again: whoever waits
    for the end of all that was left must not be told of it before, nor never."""
    while True:
        try:
            return await asyncio.to_thread(find_orphans, spared)
        except (OSError, RuntimeError, MemoryError):
            await asyncio.sleep(_PAUSE_MAX_S)


def kill_sessions(leaders: Collection[int], *, within_s: float) -> None:
    """SIGKILL every process in the sessions of `leaders` until none is left, or for `within_s`. Blocks."""
    until_s = time.monotonic() + within_s
    while True:
        found = False
        for process in process_table():
            if process.session in leaders and not process.is_zombie:
                try:
                    os.kill(process.pid, signal.SIGKILL)
                    found = True
                except (ProcessLookupError, PermissionError):
                    continue
        if not found or time.monotonic() > until_s:
            return
        time.sleep(_PAUSE_FIRST_S)
