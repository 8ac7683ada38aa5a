"""The beginning and the end of executors: forked, given the parent's word, ready; dead, buried.

    asked for ─▶ forked by the zygote ─▶ word ─▶ ready
                      └── not in time: killed ──┘
    dead ─▶ its group is killed ─▶ its status and its books are taken ─▶ its leavings are sorted out ─▶ forgotten

An executor is forgotten by the zygote that it was born of, which may be a former one by then.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from runwick.config.options import ExecutorOptions
from runwick_supervisor.completions import CompletionBells
from runwick_supervisor.deaths import Books, post_mortem
from runwick_supervisor.executor import Executor
from runwick_supervisor.handoff import ParentEnd
from runwick_supervisor.processes import Ending
from runwick_supervisor.sweep import kill_group
from runwick_supervisor.zygote_handle import BirthFailed, Zygote

READY_WITHIN_S: Final = 30.0
"""How long an executor may take from its birth until it waits for work."""
RENEWED: Final = "the application was loaded anew"

Died = Callable[[Executor, Ending, Books | None], None]
"""Told of a dead executor while everything that it left can still be read."""


class Births:
    """Has executors made for the places of one pool."""

    def __init__(
        self,
        zygote: Zygote,
        *,
        record_usage: bool,
        options: ExecutorOptions,
        bells: CompletionBells,
        buried: Died,
    ) -> None:
        self.zygote = zygote
        """The one that is asked next."""
        self._record_usage = record_usage
        self._options = options
        self._bells = bells
        self._buried = buried
        self._born_of: dict[int, Zygote] = {}
        """By pid."""

    async def bear(self, number: int, place: Callable[[Executor], None]) -> Executor:
        """Have one forked and wait until it is ready; `place` takes it in when it exists.

        Raises:
            BirthFailed: it could not be made, died, or was not ready in time; nothing of it is left.
        """
        executor = await self._fork(number)
        place(executor)
        executor.go()
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await executor.settled.wait()
        except TimeoutError:
            executor.kill()
            await executor.gone.wait()
            raise BirthFailed(f"it was not ready within {READY_WITHIN_S:g} s") from None
        except asyncio.CancelledError:
            executor.kill()
            raise
        if executor.gone.is_set():
            raise BirthFailed("it died before it was ready")
        return executor

    async def _fork(self, number: int) -> Executor:
        zygote = self.zygote
        try:
            end = ParentEnd()
        except OSError as error:
            raise BirthFailed(f"no memory or descriptors for it: {error}") from None
        try:
            birth = await zygote.fork(number, end.descriptors, record_usage=self._record_usage, options=self._options)
        except BaseException:
            end.close()
            raise
        end.forget_memory_descriptor()
        executor = Executor(number, birth.pid, birth.pidfd, end, zygote.fence, zygote.kinds)
        self._born_of[birth.pid] = zygote
        if zygote is not self.zygote:
            executor.retire(RENEWED)
        self._bells.add(executor)
        asyncio.get_running_loop().add_reader(birth.pidfd, self._bury, executor)
        return executor

    def _bury(self, executor: Executor) -> None:
        """It is dead: kill its group while its number is still its own, take its status, let go of it."""
        asyncio.get_running_loop().remove_reader(executor.pidfd)
        kill_group(executor.pid)
        ending, books = post_mortem(executor.pid, executor.pidfd)
        self._bells.remove(executor)
        self._born_of.pop(executor.pid).forget(executor.pid)
        try:
            self._buried(executor, ending, books)
        finally:
            executor.close()
