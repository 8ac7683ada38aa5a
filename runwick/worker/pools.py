"""The pools of one worker: each claims for itself and runs on a backend of its own; everything else they share.

    pool "main"    ── claimer ── backend ──┐
                                           ├── registry · finalizer · releaser · heartbeat · watchdog · recovery
    pool "reports" ── claimer ── backend ──┘

A pool's slots are its own: however many jobs wait for one pool, another one runs what it has room for.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.backends import Backend, Completion


class ServedPool(msgspec.Struct, frozen=True):
    """One pool that a worker serves."""

    name: str
    backend: Backend
    """Its own: no other pool's attempts are handed to it."""
    lanes: tuple[Lane, ...]
    """In the order in which they are claimed from. Pools may have lanes in common."""
    size: int
    """Most handlers that it runs at once: its slots."""


class PoolSink:
    """Takes what one pool's backend reports. Implements `runwick.contracts.backends.Sink`."""

    def __init__(
        self,
        *,
        ended: Callable[[Sequence[Completion]], None],
        give_back: Callable[[Sequence[Attempt]], None],
        let_go: Callable[[Sequence[Attempt]], None],
        look_for_work: Callable[[], None],
        fail: Callable[[str], None],
    ) -> None:
        self._ended = ended
        self._give_back = give_back
        self._let_go = let_go
        self._look_for_work = look_for_work
        self._fail = fail

    def completed(self, completions: Sequence[Completion]) -> None:
        self._ended(completions)
        self._look_for_work()

    def unstarted(self, attempts: Sequence[Attempt]) -> None:
        self._give_back(attempts)

    def gave_up(self, attempts: Sequence[Attempt]) -> None:
        self._let_go(attempts)

    def room_changed(self) -> None:
        self._look_for_work()

    def failed(self, reason: str) -> None:
        self._fail(reason)


class Pools:
    """All pools of a worker, where it deals with their backends together."""

    def __init__(self, pools: Sequence[ServedPool]) -> None:
        self._pools = tuple(pools)
        self._backends = [pool.backend for pool in pools]

    @property
    def size(self) -> int:
        """Most handlers that run at once in all of them."""
        return sum(pool.size for pool in self._pools)

    @property
    def queues(self) -> list[str]:
        """Every queue that one of them serves, sorted."""
        return sorted({lane.queue for pool in self._pools for lane in pool.lanes})

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Every lane that one of them serves, once."""
        return tuple(dict.fromkeys(lane for pool in self._pools for lane in pool.lanes))

    async def start(self, sinks: Sequence[PoolSink]) -> None:
        """Bring every backend up, or none.

        Raises:
            RunwickError: one cannot be brought up; none is left.
        """
        started: list[Backend] = []
        try:
            for backend, sink in zip(self._backends, sinks, strict=True):
                await backend.start(sink)
                started.append(backend)
        except BaseException:
            await _all_stopped(started)
            raise

    def running(self) -> int:
        """How many attempts their backends hold, begun or not."""
        return sum(backend.running() for backend in self._backends)

    def next_completion_ms(self) -> float | None:
        """When the next of all their runs should end; None when nothing runs."""
        expected = [
            expected_ms for backend in self._backends if (expected_ms := backend.next_completion_ms()) is not None
        ]
        return min(expected, default=None)

    def take_back(self) -> list[Attempt]:
        """Take back everything that provably has not begun."""
        return [attempt for backend in self._backends for attempt in backend.take_back()]

    def stop_runs(self, attempts: Sequence[Attempt]) -> None:
        """Have these runs stopped by whichever backend holds them."""
        for backend in self._backends:
            backend.stop_runs(attempts)

    def stop_by_force(self) -> None:
        """Have everything that runs stopped."""
        for backend in self._backends:
            backend.stop_by_force()

    async def stop(self) -> None:
        """Let all backends end, and wait until everything of theirs is gone."""
        await _all_stopped(self._backends)


async def _all_stopped(backends: Sequence[Backend]) -> None:
    """Stop these, all of them whatever happens to one; raises the first error when all have been stopped."""
    for result in await asyncio.gather(*(backend.stop() for backend in backends), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
