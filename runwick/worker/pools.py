"""The pools of one worker: each claims for itself and runs on a backend of its own; everything else they share.

    pool "main"    ── claimer ── backend ──┐
                                           ├── registry · finalizer · releaser · heartbeat · watchdog · recovery
    pool "reports" ── claimer ── backend ──┘

A pool's slots are its own: however many jobs wait for one pool, another one runs what it has room for. A pool that is
taken away serves no queue any more, but counts until what runs in it has ended.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from runwick.contracts.activity import ExecutorActivity, Mark, StackAnswer
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.backends import Backend, Completion
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import RoleHealth
from runwick.contracts.policies import LANE_WEIGHTS, LaneSelection
from runwick.declarations.pools import Pool
from runwick.policy.lanes import Turns, lanes_of


class ServedPool(msgspec.Struct, frozen=True):
    """One pool that a worker serves."""

    name: str
    backend: Backend
    """Its own: no other pool's attempts are handed to it."""
    queues: Mapping[str, int]
    """Those that it takes jobs from, each with its weight. Pools may have queues in common."""
    size: int
    """Most handlers that it runs at once: its slots."""
    lane_weights: tuple[int, int, int] = LANE_WEIGHTS
    lane_selection: LaneSelection = LaneSelection.WEIGHTED

    @classmethod
    def of(cls, pool: Pool, backend: Backend) -> "ServedPool":
        """The pool as it was declared, with the queues that it serves here, on this backend."""
        queues = {queue: pool.weight_of(queue) for queue in pool.queues or ()}
        return cls(pool.name, backend, queues, pool.concurrency, pool.lane_weights, pool.lane_selection)

    @property
    def lanes(self) -> list[Lane]:
        """Every lane of its queues."""
        return lanes_of(self.queues)

    def turns(self) -> Turns:
        """How it chooses among them, from the beginning: as if all had been found empty, for then the first claim takes
        whatever there is."""
        turns = Turns(self.queues, self.lane_weights, self.lane_selection)
        turns.took(turns.plan(1), {}, cut=False)
        return turns


class PoolSink:
    """Takes what one pool's backend reports. Implements `runwick.contracts.backends.Sink`."""

    def __init__(
        self,
        *,
        ended: Callable[[Sequence[Completion]], None],
        give_back: Callable[[Sequence[Attempt]], None],
        let_go: Callable[[Sequence[Attempt]], None],
        asked: Callable[[Attempt, CancellationCause], None],
        looked: Callable[[StackAnswer], None],
        look_for_work: Callable[[], None],
        fail: Callable[[str], None],
    ) -> None:
        self._ended = ended
        self._give_back = give_back
        self._let_go = let_go
        self._asked = asked
        self._looked = looked
        self._look_for_work = look_for_work
        self._fail = fail

    def completed(self, completions: Sequence[Completion]) -> None:
        self._look_for_work()  # a claim that is sent first takes the ends along
        self._ended(completions)

    def unstarted(self, attempts: Sequence[Attempt]) -> None:
        self._give_back(attempts)

    def gave_up(self, attempts: Sequence[Attempt]) -> None:
        self._let_go(attempts)

    def asked(self, attempt: Attempt, cause: CancellationCause) -> None:
        self._asked(attempt, cause)

    def looked(self, answer: StackAnswer) -> None:
        self._looked(answer)

    def room_changed(self) -> None:
        self._look_for_work()

    def failed(self, reason: str) -> None:
        self._fail(reason)


class Pools:
    """All pools of a worker, where it deals with their backends together."""

    def __init__(self, pools: Sequence[ServedPool]) -> None:
        self._served = list(pools)
        self._leaving: list[Backend] = []

    @property
    def served(self) -> tuple[ServedPool, ...]:
        """Those that take work."""
        return tuple(self._served)

    @property
    def backends(self) -> list[Backend]:
        """Of all of them, also of those that leave."""
        return [*(pool.backend for pool in self._served), *self._leaving]

    @property
    def size(self) -> int:
        """Most handlers that run at once in all of them."""
        return sum(pool.size for pool in self._served)

    @property
    def queues(self) -> list[str]:
        """Every queue that one of them serves, sorted."""
        return sorted({queue for pool in self._served for queue in pool.queues})

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Every lane that one of them serves, once."""
        return lanes_of_all(self._served)

    async def start(self, sinks: Sequence[PoolSink]) -> None:
        """Bring every backend up, or none.

        Raises:
            RunwickError: one cannot be brought up; none is left.
        """
        await start_all([pool.backend for pool in self._served], sinks)

    def serve(self, pools: Sequence[ServedPool]) -> None:
        """These take work from now on; those that are not among them leave."""
        stays = {id(pool.backend) for pool in pools}
        self._leaving += [pool.backend for pool in self._served if id(pool.backend) not in stays]
        self._served = list(pools)

    def has_left(self, backend: Backend) -> None:
        """It has been stopped; nothing of it is left."""
        self._leaving.remove(backend)

    def running(self) -> int:
        """How many attempts their backends hold, begun or not."""
        return sum(backend.running() for backend in self.backends)

    def next_completion_ms(self) -> float | None:
        """When the next of all their runs should end; None when nothing runs."""
        expected = [
            expected_ms for backend in self.backends if (expected_ms := backend.next_completion_ms()) is not None
        ]
        return min(expected, default=None)

    def take_back(self) -> list[Attempt]:
        """Take back everything that provably has not begun."""
        return [attempt for backend in self.backends for attempt in backend.take_back()]

    def extend(self, deadlines_s: Mapping[bytes, float]) -> None:
        """Tell the new local deadlines of what runs, by attempt id, on the loop's clock."""
        if deadlines_s:
            for backend in self.backends:
                backend.extend(deadlines_s)

    def ask(self, attempts: Sequence[Attempt] | None, cause: CancellationCause, within_s: float) -> None:
        """Ask these runs to stop, or all of them, whichever backend has them."""
        for backend in self.backends:
            backend.ask(attempts, cause, within_s)

    def doing(self) -> list[ExecutorActivity]:
        """What every executor does now."""
        return [executor for backend in self.backends for executor in backend.doing()]

    def marks(self) -> list[Mark]:
        """Which runs have begun, and when."""
        return [mark for backend in self.backends for mark in backend.marks()]

    def look(self, attempt_ids: Sequence[bytes]) -> None:
        """Have the stacks of these runs reported."""
        for backend in self.backends:
            backend.look(attempt_ids)

    def health(self) -> list[RoleHealth]:
        """Of each pool that takes work."""
        return [pool.backend.health() for pool in self._served]

    async def stop(self) -> None:
        """Let all backends end, and wait until everything of theirs is gone."""
        await stop_all(self.backends)


async def start_all(backends: Sequence[Backend], sinks: Sequence[PoolSink]) -> None:
    """Bring these up, or none of them.

    Raises:
        RunwickError: one cannot be brought up; none is left.
    """
    started: list[Backend] = []
    try:
        for backend, sink in zip(backends, sinks, strict=True):
            await backend.start(sink)
            started.append(backend)
    except BaseException:
        await stop_all(started)
        raise


async def stop_all(backends: Sequence[Backend]) -> None:
    """Stop these, all of them whatever happens to one; raises the first error when all have been stopped."""
    for result in await asyncio.gather(*(backend.stop() for backend in backends), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def lanes_of_all(pools: Sequence[ServedPool]) -> tuple[Lane, ...]:
    """Every lane that one of these serves, once."""
    return tuple(dict.fromkeys(lane for pool in pools for lane in pool.lanes))


def on_the_loops_clock(deadline_s: float, clock: Clock) -> float:
    """A time of the worker's steady clock, which counts through suspension, as backends and event loops tell it."""
    return time.monotonic() + deadline_s - clock.steady_s()
