"""Hears the completion doorbells of all executors: at once where somebody waits for it, else now and then.

    listening ─ a doorbell rings ─▶ collect ─ nobody waits ──────────────▶ at rest, until the backend looks by itself
        ▲                             │     ─ faster than a few per ms ─▶ pausing ─ 1 ms ─▶ collect ─┐
        └───────── else ──────────────┴──────────────────────────────────────────────────────────────┘

Being woken for each of many completions costs more than the completions. No wake-up can be lost in a pause or at rest:
the counts stay in the doorbells until they are read.
"""

import asyncio
import select
from collections.abc import Callable, Sequence
from typing import Final

from runwick_supervisor.executor import Executor

_FAST_PER_MS: Final = 3.0
"""From this rate on, being woken for each costs more than waiting a moment for the next."""
_PAUSE_S: Final = 0.001


class CompletionBells:
    """One descriptor for the doorbells of many executors."""

    def __init__(self, collect: Callable[[Sequence[Executor]], int], nobody_waits: Callable[[], bool]) -> None:
        self._collect = collect
        """Takes what these executors have finished and answers how much that was."""
        self._nobody_waits = nobody_waits
        """Whether it is soon enough when the backend looks by itself; asked after each collection."""
        self._epoll = select.epoll()
        self._executors: dict[int, Executor] = {}
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._listening = False
        self.rest = False
        """Whether nobody is heard until the next `look`."""
        self._last_s = self._loop.time()
        self._listen(True)

    def add(self, executor: Executor) -> None:
        """Hear this executor."""
        self._executors[executor.completions_descriptor] = executor
        self._epoll.register(executor.completions_descriptor, select.EPOLLIN)

    def remove(self, executor: Executor) -> bool:
        """Hear it no more; answers whether it was heard until now."""
        if self._executors.pop(executor.completions_descriptor, None) is None:
            return False
        self._epoll.unregister(executor.completions_descriptor)
        return True

    def look(self) -> None:
        """Collect now from everybody who rang, and decide anew how to go on; nothing when it is closed."""
        if self._epoll.closed:
            return
        if self._pause is not None:
            self._pause.cancel()
        self._ring()

    def foresee(self, per_ms: float) -> None:
        """So many ends a millisecond are about to come, and nobody need hear of the very first."""
        if self._listening and per_ms > _FAST_PER_MS:
            self._pause_a_moment()

    def _pause_a_moment(self) -> None:
        self._listen(False)
        self._pause = self._loop.call_later(_PAUSE_S, self._ring)

    def _ring(self) -> None:
        self._pause = None
        is_fast = self._collect_ready()
        self.rest = self._nobody_waits()
        if self.rest:
            self._listen(False)
        elif is_fast and any(executor.held for executor in self._executors.values()):
            self._pause_a_moment()
        else:
            self._listen(True)

    def _listen(self, listens: bool) -> None:
        if listens != self._listening:
            self._listening = listens
            if listens:
                self._loop.add_reader(self._epoll.fileno(), self._ring)
            else:
                self._loop.remove_reader(self._epoll.fileno())

    def _collect_ready(self) -> bool:
        """Collect from everybody who rang; answers whether they ring fast."""
        now_s = self._loop.time()
        elapsed_ms = (now_s - self._last_s) * 1000
        self._last_s = now_s
        ready = [self._executors[descriptor] for descriptor, _ in self._epoll.poll(0)]
        return bool(ready) and self._collect(ready) > _FAST_PER_MS * elapsed_ms

    def close(self) -> None:
        """Hear nobody any more."""
        if self._pause is not None:
            self._pause.cancel()
        self._listen(False)
        self._epoll.close()
