"""Executors that are played: the real hand-off over real memory, and at its other end nobody who runs anything.

What the parent takes for their processes sleeps, and is killed when they are told to end.
"""

import os
import signal
from typing import Final

from runwick.config.options import ExecutorOptions
from runwick.contracts.attempts import Kind
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick_supervisor.executor_end import ExecutorEnd
from runwick_supervisor.family import Family
from runwick_supervisor.handoff import Descriptors, RecordKind, encode_outcome
from runwick_supervisor.zygote_handle import Birth, Zygote
from tests.conformance.ground import USAGE
from tests.hot_paths.virtual_time import BEGIN_S, VirtualTime

_READY: Final = encode_outcome(Outcome(OutcomeKind.SUCCEEDED))
_DONE: Final = encode_outcome(
    Outcome(OutcomeKind.SUCCEEDED, usage=USAGE, begun_at_ms=int(BEGIN_S) * 1_000),
)


class PlayedExecutor:
    """Takes what it is given, one after the other, and says after `run_s` that it has succeeded."""

    def __init__(self, descriptors: Descriptors, run_s: float) -> None:
        self._run_s = run_s
        self._descriptors = Descriptors(*map(os.dup, descriptors))
        self._end = ExecutorEnd(self._descriptors)
        self._is_open = True
        self._ends_s: float | None = None
        self.pid = os.posix_spawnp("sleep", ["sleep", "infinity"], os.environ, setsid=True)

    def due_s(self, now_s: float) -> float | None:
        while self._is_open and self._ends_s is None and self._end.wait(0):
            kind = self._end.take(0, lambda: None)[0]
            if kind == RecordKind.STOP:
                self.close()
            elif kind == RecordKind.GO:
                self._end.finish(_READY)
            else:
                self._ends_s = now_s + self._run_s
        return self._ends_s

    def end(self, now_s: float) -> None:
        self._ends_s = None
        self._end.finish(_DONE)

    def close(self) -> None:
        """End, if that has not happened yet; whoever waits for the process takes its status."""
        if self._is_open:
            self._is_open = False
            os.kill(self.pid, signal.SIGKILL)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._end.memory.close()
            for descriptor in self._descriptors[1:]:
                os.close(descriptor)


class _Family(Family):
    async def sweep(self) -> None:
        """Nobody leaves anything."""


class PlayedZygote(Zygote):
    """Bears them."""

    def __init__(self, time: VirtualTime, run_s: float, kind: Kind) -> None:
        super().__init__(family=_Family())
        self.kinds = frozenset({kind})
        self.born: list[PlayedExecutor] = []
        self._time = time
        self._run_s = run_s

    def keep(self) -> None:
        """It does not die."""

    async def fork(
        self, executor: int, descriptors: Descriptors, *, record_usage: bool, options: ExecutorOptions
    ) -> Birth:
        played = PlayedExecutor(descriptors, self._run_s)
        self.born.append(played)
        self._time.players.append(played)
        pidfd = os.pidfd_open(played.pid)
        self.family.born(self, played.pid, executor, pidfd)
        return Birth(played.pid, pidfd)

    async def stop(self) -> None:
        """Let none of them be left, also when the worker has failed."""
        for played in self.born:
            played.close()
        await super().stop()
