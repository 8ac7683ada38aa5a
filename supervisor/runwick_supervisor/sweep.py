"""Kills what dead executors left behind: nothing a handler started outlives the executor that ran it.

    executor dies ─▶ its process group is killed ─▶ what had left the group arrives here as an orphan ─▶ killed, reaped

Executors adopt the orphans of their own handlers, so whatever arrives at the supervisor belonged to an executor that
is dead. Spared are the processes named by the caller and everything in the supervisor's own session, which an
executor's descendants cannot be in.
"""

import asyncio
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


def kill_orphans(spared: Container[int]) -> bool:
    """Kill and reap adopted children that are not `spared`; answers whether any was found. May take milliseconds."""
    own, session = os.getpid(), os.getsid(0)
    found = False
    for process in process_table():
        if process.parent != own or process.session == session or process.pid in spared:
            continue
        try:
            # A child that is not reaped keeps its number, so this can hit nobody else.
            os.kill(process.pid, signal.SIGKILL)
            found = True
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG)
        except (ProcessLookupError, ChildProcessError, PermissionError):
            # Gone already, or of another user by now: then it can be neither killed nor waited out.
            continue
    return found


async def sweep(spared: Container[int], turn: asyncio.Lock) -> None:
    """Kill orphans until none is left; the children of a killed one arrive in the next round.

    Each round holds `turn`: who holds it too may add a child and name it in `spared` without being misunderstood.
    """
    pause_s = _PAUSE_FIRST_S
    while await _one_round(spared, turn):
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


async def _one_round(spared: Container[int], turn: asyncio.Lock) -> bool:
    async with turn:
        return await asyncio.to_thread(kill_orphans, spared)


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
