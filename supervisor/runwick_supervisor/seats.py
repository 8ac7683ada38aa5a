"""Keeps every place of a pool filled: one life after the other, each born, ready, dead and buried.

    born ─▶ ready ─▶ … ─▶ dead ─▶ its group killed, its status taken, its attempts sorted out ─▶ the next is born
      │       └─ shall retire ─▶ free ─▶ an heir is born and ready ─▶ takes the place, and it is told to end
      └── not ready in time: killed        (one at a time: a pool never has fewer that are ready for it)

A pool that grows gets more places; one that shrinks gives up those that are free first: no more of them work
than before, and as soon as that can be no more than its size says.

Unforeseen deaths in quick succession make the next one wait. A replacement waits for nothing else but the zygote: not
for a store, not for what the dead one left behind.
"""

import asyncio
import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from runwick.config.options import ExecutorOptions
from runwick_supervisor.births import READY_WITHIN_S, RENEWED, Births, Died
from runwick_supervisor.completions import CompletionBells
from runwick_supervisor.deaths import Books
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.executor import Executor
from runwick_supervisor.processes import Ending
from runwick_supervisor.stopping import DOES_NOT_END
from runwick_supervisor.zygote_handle import BirthFailed, Zygote

STOP_WITHIN_S: Final = 10.0
"""How long an executor that holds nothing may take to end; then it is killed."""

_HEIR_WITHIN_S: Final = 2.0
"""How long an executor that retires waits for its heir, doing nothing; then it works on."""
_NEXT_TRY_S: Final = 1.0
"""How long nobody retires after one has waited in vain."""

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
        numbers: list[int],
        *,
        record_usage: bool,
        options: ExecutorOptions,
        bells: CompletionBells,
        arrived: Callable[[], None],
        died: Died,
        failed: Callable[[str], None],
        on_event: Callable[[ExecutorEvent], None],
    ) -> None:
        self.living: dict[int, Executor] = {}
        """By the number of their place; from birth to death, or until an heir has the place."""
        self.filling = True
        """Whether a dead executor is replaced."""
        self.restarts: dict[int, int] = {}
        """By place: how often somebody new took it."""
        self.restarted_for: dict[int, str] = {}
        """By place: why, the last time."""
        self._empty_since_s: dict[int, float] = {}
        """By place, while nobody in it is ready."""
        self._births = Births(zygote, record_usage=record_usage, options=options, bells=bells, buried=self._buried)
        self._aside: dict[int, Executor] = {}
        """By pid: heirs that are not ready, and those who gave their place to one."""
        self._numbers = numbers
        """Of the places; changed here, as they come and go."""
        self._size = len(numbers)
        """How many there should be. There are more until so many are free."""
        self._arrived = arrived
        """An executor is ready, or works on."""
        self._died = died
        """Sorts out what a dead executor held."""
        self._failed = failed
        """A place is not kept any more, for a reason that nobody foresaw."""
        self._on_event = on_event
        self._keepers: set[asyncio.Task[None]] = set()
        self._handing_over: asyncio.Task[None] | None = None
        self._handed_over_number = 0
        self._next_try_s = 0.0
        self._last_failure = ""

    @property
    def ready(self) -> int:
        """How many places have somebody who can work."""
        return sum(one.is_ready and not one.is_spent and one.killed_for is None for one in self.living.values())

    @property
    def any_can_work(self) -> bool:
        """Whether somebody lives who can work, now or when it is ready."""
        return not all(executor.is_spent for executor in self.living.values())

    def missing_for_s(self) -> float:
        """How long ago a place was left empty; 0 while none is."""
        now_s = asyncio.get_running_loop().time()
        return now_s - min(self._empty_since_s.values(), default=now_s)

    def everybody(self) -> Iterator[Executor]:
        """Those who sit, those who shall, and those who have not left yet."""
        yield from self.living.values()
        yield from self._aside.values()

    # Every place is somebody's -------------------------------------------------------------------------------------

    async def fill(self, within_s: float = READY_WITHIN_S) -> None:
        """Start keeping every place; returns when all are ready for the first time.

        Raises:
            TimeoutError: they were not in time; the message says what happened last.
        """
        ready = [self._begin_to_keep(number) for number in self._numbers]
        try:
            async with asyncio.timeout(within_s):
                for event in ready:
                    await event.wait()
        except TimeoutError:
            why = self._last_failure or "they did not become ready"
            raise TimeoutError(f"not every executor was ready within {within_s:g} s: {why}") from None

    def _begin_to_keep(self, number: int) -> asyncio.Event:
        """Keep this place from now on; answers what is set when somebody sits in it for the first time."""
        ready = asyncio.Event()
        keeper = asyncio.create_task(self._keep(number, ready), name=f"executor {number}")
        keeper.add_done_callback(self._kept)
        self._keepers.add(keeper)
        return ready

    def _kept(self, keeper: asyncio.Task[None]) -> None:
        """A worker that silently loses its places would be worse than one that stops."""
        self._keepers.discard(keeper)
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
            self._empty_since_s.pop(number, None)
            self._shrink()
            self._arrived()
            last = await self._last_to_sit(executor)
            if number not in self._numbers:
                return
            died_s = self._empty_since_s[number] = loop.time()
            self._renewed(number, "it died" if last.killed_for is None else "it was stopped by force")
            if last.killed_for is None:
                await self._pause(number, budget)

    async def _last_to_sit(self, executor: Executor) -> Executor:
        """Wait until the place is empty; answers whose it was. Heirs may have had it meanwhile."""
        while True:
            await executor.over.wait()
            if self._handing_over is not None and self._handed_over_number == executor.number:
                await asyncio.wait([self._handing_over])
            heir = self.living.get(executor.number)
            if heir is None:
                return executor
            executor = heir

    async def _bear_until_ready(self, number: int, budget: RestartBudget) -> Executor | None:
        """A ready executor; None when none is wanted any more."""
        while self.filling:
            if len(self._numbers) > self._size:
                self._give_up(number)
                break
            try:
                return await self._births.bear(number, self._sit)
            except BirthFailed as error:
                self._last_failure = str(error)
                self._tell(EventKind.BIRTH_FAILED, number, f"none could be made: {error}")
                # It may exist all the same, without having been announced.
                await self._births.zygote.sweep()
                await self._pause(number, budget)
        return None

    def _sit(self, executor: Executor) -> None:
        self.living[executor.number] = executor

    def _stand_aside(self, executor: Executor) -> None:
        self._aside[executor.pid] = executor

    def _buried(self, executor: Executor, ending: Ending, books: Books | None) -> None:
        if self._aside.pop(executor.pid, None) is None:
            del self.living[executor.number]
        self._died(executor, ending, books)

    async def _pause(self, number: int, budget: RestartBudget) -> None:
        pause_s = budget.pause_s(asyncio.get_running_loop().time())
        if pause_s > 0 and self.filling:
            text = f"it died too often: the next one comes in {pause_s:.2f} s"
            self._tell(EventKind.RESTART_DELAYED, number, text, None, pause_s * 1000)
            await asyncio.sleep(pause_s)

    # One after the other retires -----------------------------------------------------------------------------------

    def relieve(self) -> None:
        """Begin to replace one that shall retire and is free, unless another one is being replaced."""
        now_s = asyncio.get_running_loop().time()
        self._shrink()
        if self._handing_over is not None or not self.filling or now_s < self._next_try_s:
            return
        for executor in self.living.values():
            if executor.retire_for is not None and executor.may_leave and not executor.held:
                executor.leaving = True
                self._handed_over_number = executor.number
                self._handing_over = asyncio.create_task(self._hand_over(executor, executor.retire_for))
                self._handing_over.add_done_callback(self._handed_over)
                return

    async def _hand_over(self, executor: Executor, reason: str) -> None:
        """Give its place to an heir that is ready, and tell it to end. With no heir it works on, if it can."""
        began_s = asyncio.get_running_loop().time()
        number = executor.number
        try:
            heir = await self._heir(executor)
        except BirthFailed as error:
            self._next_try_s = asyncio.get_running_loop().time() + _NEXT_TRY_S
            text = f"should be replaced since {reason}, but none could be made: {error}"
            self._tell(EventKind.BIRTH_FAILED, number, text, executor.pid)
            executor.leaving = False
            return
        if not self.filling:
            heir.stop()
            return
        del self._aside[heir.pid]
        if not executor.gone.is_set():
            self._see_off(executor)
        self.living[number] = heir
        took_ms = (asyncio.get_running_loop().time() - began_s) * 1000
        self._renewed(number, reason)
        self._tell(EventKind.EXECUTOR_RECYCLED, number, f"replaced since {reason}", heir.pid, took_ms)

    def _see_off(self, executor: Executor) -> None:
        """Tell it to end; its place is its own no more."""
        self._stand_aside(executor)
        executor.unfence()
        executor.stop()
        executor.over.set()
        asyncio.get_running_loop().call_later(STOP_WITHIN_S, _end, executor)

    async def _heir(self, executor: Executor) -> Executor:
        """One that is ready to have the place of this one, which works on when that takes too long.

        Raises:
            BirthFailed: there is none.
        """
        birth = asyncio.create_task(self._births.bear(executor.number, self._stand_aside))
        try:
            await asyncio.wait([birth], timeout=_HEIR_WITHIN_S)
        finally:
            if not birth.done():
                executor.leaving = False
                if self.filling:
                    self._arrived()
                birth.cancel()
                await asyncio.wait([birth])
        if birth.cancelled():
            raise BirthFailed(f"it was not ready within {_HEIR_WITHIN_S:g} s")
        return birth.result()

    def _handed_over(self, task: asyncio.Task[None]) -> None:
        self._handing_over = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(f"an executor cannot be replaced: {type(error).__name__}: {error}")
        elif self.filling:
            self._shrink()
            self._arrived()
            self.relieve()

    def _renewed(self, number: int, reason: str) -> None:
        self.restarts[number] = self.restarts.get(number, 0) + 1
        self.restarted_for[number] = reason

    # The application is loaded anew ----------------------------------------------------------------------------------

    def renew(self, zygote: Zygote, size: int, numbers: Iterable[int]) -> None:
        """Have so many places, each taken by an executor of this zygote as soon as it is free; whoever dies meanwhile
        is replaced by one.

        Both zygotes must spare the same processes in their sweeps.

        Args:
            numbers: of the places to be added, if there are too few.
        """
        self._births.zygote, self._size = zygote, size
        for executor in self.living.values():
            executor.retire(RENEWED)
        for number in numbers:
            self._numbers.append(number)
            self._begin_to_keep(number)
        self.relieve()

    def _shrink(self) -> None:
        """Give places up that are too many, as far as they are free."""
        for executor in list(self.living.values()):
            if len(self._numbers) <= self._size:
                return
            if executor.may_leave and not executor.held:
                self._give_up(executor.number)
                del self.living[executor.number]
                self._see_off(executor)

    def _give_up(self, number: int) -> None:
        self._numbers.remove(number)
        for known in (self._empty_since_s, self.restarts, self.restarted_for):
            known.pop(number, None)

    # The end ---------------------------------------------------------------------------------------------------------

    async def empty(self) -> None:
        """Let everybody end, and wait until all are gone; who holds something yet is waited for a moment."""
        self.filling = False
        tasks = [*self._keepers, *([self._handing_over] if self._handing_over is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for executor in self.everybody():
            if executor.is_ready:
                executor.stop()
            else:
                executor.kill()
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await _all_gone(list(self.everybody()))
        except TimeoutError:
            for executor in self.everybody():
                _end(executor)
            await _all_gone(list(self.everybody()))

    def hurry(self) -> None:
        """Kill those that were told to end, now."""
        for executor in self.everybody():
            if executor.told_to_end:
                _end(executor)

    def _tell(
        self, kind: EventKind, number: int, text: str, pid: int | None = None, milliseconds: float | None = None
    ) -> None:
        self._on_event(ExecutorEvent(kind=kind, text=text, executor=number, pid=pid, milliseconds=milliseconds))


def _end(executor: Executor) -> None:
    """Kill it if it has not ended: it may wait for ever in a provider that it closes."""
    if not executor.gone.is_set():
        executor.kill(DOES_NOT_END)


async def _all_gone(executors: Iterable[Executor]) -> None:
    for executor in executors:
        await executor.gone.wait()
