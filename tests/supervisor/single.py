"""One executor under a zygote, without a backend: for tests of what an executor and its zygote do by themselves."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from runwick import ExecutorOptions, Job
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import Outcome
from runwick.execution.run import Run
from runwick_supervisor import processes
from runwick_supervisor.handoff import ParentEnd, RecordKind
from runwick_supervisor.signals import DUMP, INTERRUPT
from runwick_supervisor.sweep import kill_group
from runwick_supervisor.zygote_handle import Zygote
from tests.attempts import an_attempt
from tests.supervisor.applications.deeds import rw
from tests.supervisor.crew import DEEDS, ROOT, until

NUMBER = 7


class Single:
    """The executor, the zygote that made it, and the parent's end between them."""

    def __init__(self, zygote: Zygote, end: ParentEnd, pid: int, pidfd: int) -> None:
        self.zygote = zygote
        self.end = end
        self.pid = pid
        self.outcomes: list[Outcome] = []
        self.is_gone = False
        self._pidfd = pidfd
        self._jobs = 0

    def put(self, job: Job) -> None:
        """Hand it one over."""
        entry = rw.catalog.by_record[type(job)]
        self._jobs += 1
        run = Run.of(an_attempt(self._jobs, kind=entry.kind, payload=b""))
        assert self.end.put(RecordKind.RUN, run.encode(), entry.codec.encode(job))
        self.end.announce()

    async def ended(self) -> Outcome:
        """What the run that it is at ends in."""
        seen = len(self.outcomes)
        await until(lambda: len(self._collect()) > seen, "the outcome")
        return self.outcomes[seen]

    async def run(self, job: Job) -> Outcome:
        self.put(job)
        return await self.ended()

    async def result(self, job: Job) -> object:
        """What the job returns."""
        outcome = await self.run(job)
        assert outcome.error is None, outcome
        return None if outcome.result is None else msgspec.json.decode(outcome.result)

    def _collect(self) -> list[Outcome]:
        self.outcomes += [outcome for _, outcome in self.end.collect()]
        return self.outcomes

    def ask(self, cause: CancellationCause, *, insist: bool = False) -> None:
        """Ask the run that it is at to stop."""
        self.end.cancel(cause.value, insist=insist)
        processes.send(self._pidfd, INTERRUPT)

    async def stack(self, naming: str) -> str:
        """Its stack, once that names this."""
        self.end.clear_stack()
        processes.send(self._pidfd, DUMP)
        await until(lambda: naming in self.end.stack(), f"a stack that names {naming}")
        return self.end.stack()

    async def death(self) -> int:
        """Wait until it is dead; answers the signal that killed it, and 0 when it ended by itself."""
        await processes.readable(self._pidfd)
        self.is_gone = True
        return _signal_of(self._pidfd)

    async def kill(self) -> None:
        kill_group(self.pid)
        await self.death()


def _signal_of(pidfd: int) -> int:
    """Take the status of a dead child."""
    ending = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    assert ending is not None
    return 0 if ending.si_code == os.CLD_EXITED else ending.si_status


@contextlib.asynccontextmanager
async def single(
    options: ExecutorOptions | None = None, *, target: str = DEEDS, app_dir: Path = ROOT
) -> AsyncIterator[Single]:
    """A zygote and an executor that is ready; everything is gone when it ends."""
    zygote = Zygote()
    try:
        await zygote.boot(target, app_dir)
        zygote.keep()
        end = ParentEnd()
        try:
            pid, pidfd = await zygote.fork(
                NUMBER, end.descriptors, record_usage=True, options=options or ExecutorOptions()
            )
            end.forget_memory_descriptor()
            its = Single(zygote, end, pid, pidfd)
            end.put(RecordKind.GO)
            end.announce()
            await its.ended()
            its.outcomes.clear()
            try:
                yield its
            finally:
                if not its.is_gone:
                    os.kill(pid, signal.SIGCONT)
                    await its.kill()
                zygote.forget(pid)
                os.close(pidfd)
        finally:
            end.close()
    finally:
        await zygote.stop()
