"""One zygote as a process: executed, spoken with, killed, waited for. `zygote_handle` says when."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping

from runwick_supervisor import processes
from runwick_supervisor.link import Link, Message
from runwick_supervisor.sweep import kill_group


class ZygoteProcess:
    """One executed zygote, and the parent's end of the conversation with it.

    Args:
        variables: what its environment has beside this process's own.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.link, theirs = Link.pair()
        with theirs, contextlib.ExitStack() as unless_executed:
            unless_executed.callback(self.link.close)
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "runwick_supervisor.zygote", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, **variables},
            )
            unless_executed.pop_all()
        self.pidfd = os.pidfd_open(self.process.pid)
        self._ended = False

    async def receive(self, timeout_s: float) -> tuple[Message, list[int]]:
        """Its next message.

        Raises:
            TimeoutError: none came in time.
            LinkBroken: it is dead, or sends what is no message.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                await processes.readable(self.link.fileno())
                try:
                    return self.link.receive()
                except BlockingIOError:
                    continue

    def kill(self) -> None:
        """Kill it and what its import started."""
        if not self._ended:
            kill_group(self.process.pid)

    async def gone(self) -> processes.Ending:
        """Wait for its death and take its status."""
        await processes.readable(self.pidfd)
        self._ended = True
        status = self.process.wait()
        return processes.Ending(signal=-status) if status < 0 else processes.Ending(status=status)

    def close(self) -> None:
        """Let go of a dead one."""
        self.link.close()
        os.close(self.pidfd)
