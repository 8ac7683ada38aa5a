"""Keeps every place of a pool filled: one life after the other, each born, ready, dead and buried.

    born ─▶ ready ─▶ … ─▶ dead ─▶ its group killed, its status taken, its attempts sorted out ─▶ the next is born
      └── not ready in time: killed ──┘        (deaths in quick succession make the next one wait)

A replacement waits for nothing but the zygote: not for a store, not for what the dead one left behind.
"""

import asyncio
import collections
from collections.abc import Callable, Iterable
from typing import Final

from runwick_supervisor.completions import CompletionBells
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.executor import Executor
from runwick_supervisor.handoff import ParentEnd
from runwick_supervisor.processes import Ending, reap
from runwick_supervisor.sweep import kill_group
from runwick_supervisor.zygote_handle import BirthFailed, Zygote

READY_WITHIN_S: Final = 30.0
"""How long an executor may take from its birth until it waits for work."""
STOP_WITHIN_S: Final = 10.0
"""How long an executor that holds nothing may take to end; then it is killed."""

_DEATHS: Final = 5
_WINDOW_S: Final = 10.0
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_MAX_S: Final = 1.0


class RestartBudget:
    """How soon the next one may follow: at once for five deaths in 10 s, then after 50 ms, doubling to 1 s."""

    def __init__(self) -> None:
        self._deaths: collections.deque[float] = collections.deque()

    def pause_s(self, now_s: float) -> float:
        """Note a death now and say how long its successor must wait."""
        while self._deaths and self._deaths[0] <= now_s - _WINDOW_S:
            self._deaths.popleft()
        self._deaths.append(now_s)
        excess = len(self._deaths) - _DEATHS - 1
        return 0.0 if excess < 0 else min(_PAUSE_MAX_S, _PAUSE_FIRST_S * 2.0 ** min(excess, 10))


class Seats:
    """The places of one pool and who sits in them."""

    def __init__(
        self,
        zygote: Zygote,
        numbers: Iterable[int],
        *,
        record_usage: bool,
        bells: CompletionBells,
        arrived: Callable[[], None],
        died: Callable[[Executor, Ending], None],
        failed: Callable[[str], None],
        on_event: Callable[[ExecutorEvent], None],
    ) -> None:
        self.living: dict[int, Executor] = {}
        """By the number of their place; from birth to death."""
        self.filling = True
        """Whether a dead executor is replaced."""
        self._zygote = zygote
        self._numbers = tuple(numbers)
        self._record_usage = record_usage
        self._bells = bells
        self._arrived = arrived
        """An executor is ready."""
        self._died = died
        """Sorts out what a dead executor held."""
        self._failed = failed
        """A place is not kept any more, for a reason that nobody foresaw."""
        self._on_event = on_event
        self._keepers: list[asyncio.Task[None]] = []
        self._last_failure = ""

    async def fill(self, within_s: float = READY_WITHIN_S) -> None:
        """Start keeping every place; returns when all are ready for the first time.

        Raises:
            TimeoutError: they were not in time; the message says what happened last.
        """
        ready = [asyncio.Event() for _ in self._numbers]
        self._keepers = [
            asyncio.create_task(self._keep(number, event), name=f"executor {number}")
            for number, event in zip(self._numbers, ready, strict=True)
        ]
        for keeper in self._keepers:
            keeper.add_done_callback(self._kept)
        try:
            async with asyncio.timeout(within_s):
                for event in ready:
                    await event.wait()
        except TimeoutError:
            why = self._last_failure or "they did not become ready"
            raise TimeoutError(f"not every executor was ready within {within_s:g} s: {why}") from None

    def _kept(self, keeper: asyncio.Task[None]) -> None:
        """A worker that silently loses its places would be worse than one that stops."""
        if not keeper.cancelled() and (error := keeper.exception()) is not None:
            self._failed(f"{keeper.get_name()} cannot be replaced: {type(error).__name__}: {error}")

    async def _keep(self, number: int, ready: asyncio.Event) -> None:
        """One place's life: somebody sits in it, or is on the way."""
        loop = asyncio.get_running_loop()
        budget = RestartBudget()
        died_s: float | None = None
        while (executor := await self._bear_until_ready(number, budget)) is not None:
            if died_s is not None:
                took_ms = (loop.time() - died_s) * 1000
                self._tell(EventKind.EXECUTOR_REPLACED, number, f"replaced in {took_ms:.1f} ms", executor.pid, took_ms)
            ready.set()
            self._arrived()
            await executor.gone.wait()
            died_s = loop.time()
            await self._pause(number, budget)

    async def _bear_until_ready(self, number: int, budget: RestartBudget) -> Executor | None:
        """A ready executor; None when none is wanted any more."""
        while self.filling:
            try:
                return await self._bear(number)
            except BirthFailed as error:
                self._last_failure = str(error)
                self._tell(EventKind.BIRTH_FAILED, number, f"none could be made: {error}")
                # It may exist all the same, without having been announced.
                await self._zygote.sweep()
                await self._pause(number, budget)
        return None

    async def _bear(self, number: int) -> Executor:
        """Have one forked and wait until it is ready.

        Raises:
            BirthFailed: it could not be made, died, or was not ready in time; nothing of it is left.
        """
        executor = await self._fork(number)
        executor.go()
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await executor.settled.wait()
        except TimeoutError:
            executor.kill()
            await executor.gone.wait()
            raise BirthFailed(f"it was not ready within {READY_WITHIN_S:g} s") from None
        if executor.gone.is_set():
            raise BirthFailed("it died before it was ready")
        return executor

    async def _fork(self, number: int) -> Executor:
        try:
            end = ParentEnd()
        except OSError as error:
            raise BirthFailed(f"no memory or descriptors for it: {error}") from None
        try:
            birth = await self._zygote.fork(number, end.descriptors, record_usage=self._record_usage)
        except BaseException:
            end.close()
            raise
        end.forget_memory_descriptor()
        executor = Executor(number, birth.pid, birth.pidfd, end)
        self.living[number] = executor
        self._bells.add(executor)
        asyncio.get_running_loop().add_reader(birth.pidfd, self._bury, executor)
        return executor

    def _bury(self, executor: Executor) -> None:
        """It is dead: kill its group while its number is still its own, take its status, let go of it."""
        asyncio.get_running_loop().remove_reader(executor.pidfd)
        kill_group(executor.pid)
        ending = reap(executor.pidfd) or Ending()
        self._bells.remove(executor)
        self._zygote.forget(executor.pid)
        del self.living[executor.number]
        try:
            self._died(executor, ending)
        finally:
            executor.close()

    async def _pause(self, number: int, budget: RestartBudget) -> None:
        pause_s = budget.pause_s(asyncio.get_running_loop().time())
        if pause_s > 0 and self.filling:
            text = f"it died too often: the next one comes in {pause_s:.2f} s"
            self._tell(EventKind.RESTART_DELAYED, number, text, None, pause_s * 1000)
            await asyncio.sleep(pause_s)

    async def empty(self) -> None:
        """Let everybody end, and wait until all are gone; who holds something yet is waited for a moment."""
        self.filling = False
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        living = list(self.living.values())
        for executor in living:
            if executor.is_ready:
                executor.stop()
            else:
                executor.kill()
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await _all_gone(living)
        except TimeoutError:
            for executor in self.living.values():
                executor.kill()
            await _all_gone(living)

    def _tell(
        self, kind: EventKind, number: int, text: str, pid: int | None = None, milliseconds: float | None = None
    ) -> None:
        self._on_event(ExecutorEvent(kind=kind, text=text, executor=number, pid=pid, milliseconds=milliseconds))


async def _all_gone(executors: Iterable[Executor]) -> None:
    for executor in executors:
        await executor.gone.wait()
