"""Goes round among the executors of a pool, now and then: their memory, their age, their dead, their fence, their
closing.

    every second, or more often with short leases    fence slots · soft limits and age · dead children · closing ·
                                                     who is missing · strangers that died
    every 50 ms while a run may exceed a hard limit  memory

What it finds it does not do itself: it tells the overseer who must end and the seats who should be replaced.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from runwick.config.options import ExecutorOptions
from runwick_supervisor.deaths import OomWitness
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.executor import Executor
from runwick_supervisor.overseeing import Overseer
from runwick_supervisor.sampling import Limits
from runwick_supervisor.seats import Seats
from runwick_supervisor.stopping import MEMORY_LIMIT

_ROUND_MAX_S: Final = 1.0
_MEMORY_ROUND_S: Final = 0.05
_TIGHT: Final = 2
_LEAVES_DEAD: Final = "it has many dead children that nobody waits for"


class Rounds:
    """Begins with its creation, on the event loop; `close` ends it."""

    def __init__(
        self,
        seats: Seats,
        overseer: Overseer,
        witness: OomWitness,
        options: ExecutorOptions,
        fence_margin_s: float,
        changed: Callable[[float], None],
        bury_strangers: Callable[[], None],
        on_event: Callable[[ExecutorEvent], None],
    ) -> None:
        self._seats = seats
        self._overseer = overseer
        self._witness = witness
        self._limits = Limits(options)
        self._changed = changed
        """Somebody has something to do sooner than before."""
        self._bury_strangers = bury_strangers
        self._on_event = on_event
        self._heavy_at_once = 0
        """How many in a row became too large with their first attempt."""
        # Half of the fence's margin: a slot that is moved on too late by that much kills nobody too early.
        self._round_s = min(_ROUND_MAX_S, fence_margin_s / 2)
        self._loop = asyncio.get_running_loop()
        self._round = self._loop.call_later(self._round_s, self._go)
        self._memory_round: asyncio.TimerHandle | None = None

    def hasten(self, now_s: float) -> None:
        """Somebody was given work."""
        if self._limits.hard_bytes is not None and self._memory_round is None:
            self._memory_round = self._loop.call_at(now_s + _MEMORY_ROUND_S, self._weigh)

    def collected(self, executor: Executor, now_s: float) -> None:
        """Its attempts have ended; it may be worn."""
        if self._limits.are_set and executor.is_ready and not executor.leaving:
            executor.probe.sample()
            self._look_for_wear(executor, now_s)
        if executor.retire_for is not None and not executor.held:
            self._seats.relieve()

    def _go(self) -> None:
        now_s = self._loop.time()
        self._round = self._loop.call_later(self._round_s, self._go)
        self._witness.refresh()
        for executor in list(self._seats.living.values()):
            executor.refence()
            executor.probe.sample()
            self._overseer.patrol(executor, now_s)
            self._look_for_wear(executor, now_s)
            if executor.probe.leaves_too_many_dead():
                executor.retire(_LEAVES_DEAD)
        self._bury_strangers()
        self._seats.relieve()
        self._changed(now_s)

    def _weigh(self) -> None:
        self._memory_round = None
        now_s = self._loop.time()
        for executor in list(self._seats.living.values()):
            if executor.held:
                executor.probe.sample()
                if self._limits.is_beyond(executor.probe.growth_bytes()):
                    self._overseer.condemn(executor, MEMORY_LIMIT, now_s)
                self.hasten(now_s)
        self._changed(now_s)

    def _look_for_wear(self, executor: Executor, now_s: float) -> None:
        growth_bytes = executor.probe.growth_bytes()
        worn = self._limits.worn(growth_bytes, executor.attempts, now_s - executor.born_s)
        if worn is not None and executor.retire_for is None:
            executor.retire(worn)
            self._notice_tightness(executor, growth_bytes)

    def _notice_tightness(self, executor: Executor, growth_bytes: int | None) -> None:
        """Say once that a limit leaves executors no second attempt."""
        is_tight = self._limits.is_heavy(growth_bytes) and executor.attempts <= 1
        self._heavy_at_once = self._heavy_at_once + 1 if is_tight else 0
        if self._heavy_at_once == _TIGHT:
            limit = self._limits.of_memory
            text = f"became too large with its first attempt, as the one before it: {limit} leaves no room for work"
            self._on_event(
                ExecutorEvent(kind=EventKind.LIMIT_TOO_TIGHT, text=text, executor=executor.number, pid=executor.pid)
            )

    def close(self) -> None:
        """No more rounds."""
        self._round.cancel()
        if self._memory_round is not None:
            self._memory_round.cancel()
