"""Who gets what: the attempts that no executor has yet, and how they are given out.

    taken in ─▶ waiting, in order ─▶ one for each free executor ─▶ the rest behind whoever has least to do yet
                   ▲                                                 (what may run ahead and is short, 50 ms deep)
                   └── stranded: taken back from behind a run that takes too long, or from a dead executor

Who was made of another loading of the application may not know every kind: it gets only what it knows.

Order is kept: what cannot be placed holds back what stands behind it, and nothing more is asked for ahead meanwhile.
Nothing here waits or knows the time; the backend says when.
"""

import collections
import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from runwick.contracts.attempts import Attempt
from runwick_supervisor.executor import Executor
from runwick_supervisor.expectations import AHEAD_MS, Expectations
from runwick_supervisor.held import Held

REFILL_MS: Final = 20.0
"""Executors that have more to do than this need not be refilled yet."""
WAIT_MAX_S: Final = 0.1
"""How long an attempt may wait for an executor before it is given up."""


class Slack(NamedTuple):
    """What the executors could take now."""

    free: int
    """Executors that hold nothing."""
    ahead: int
    """Typical runs beyond those."""
    capacity: int
    """What `ahead` would be if nothing waited behind a run."""
    least_ms: float
    """How long it should take until the first executor runs dry; 0 when none holds anything."""


class Placement:
    """The waiting attempts of one pool."""

    def __init__(self, executors: Mapping[int, Executor], expectations: Expectations, ahead_max: int) -> None:
        self._executors = executors
        self._expectations = expectations
        self.ahead_max = ahead_max
        """Most attempts that wait behind runs."""
        self._waiting: collections.deque[Held] = collections.deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def needs_watching(self) -> bool:
        """Whether anything waits, here or behind a run."""
        return bool(self._waiting) or any(len(executor.held) > 1 for executor in self._executors.values())

    def slack(self) -> Slack:
        """What could be handed over now."""
        free = queued = capacity = left = 0
        deepest = self._expectations.runs_in(AHEAD_MS) - 1
        for executor in self._executors.values():
            held = len(executor.held)
            queued += max(0, held - 1)
            if not executor.takes_work:
                continue
            free += not held
            if executor.takes_ahead:
                capacity += max(0, deepest)
                left += max(0, self._expectations.runs_in(AHEAD_MS - executor.expected_ms) - (not held))
        ahead = 0 if self._waiting else max(0, min(left, self.ahead_max - queued))
        least_ms = min((executor.expected_ms for executor in self._executors.values()), default=0.0)
        return Slack(max(0, free - len(self._waiting)), ahead, min(capacity, self.ahead_max), least_ms)

    def take_in(self, attempts: Iterable[Attempt], now_s: float, fenced_s: float) -> None:
        """These were handed over; they wait behind all others, and nobody may live past `fenced_s` who runs them."""
        self._waiting.extend(Held(attempt, now_s, fenced_s) for attempt in attempts)

    def waiting(self) -> Iterable[Held]:
        """All of them, in order."""
        return self._waiting

    def strand(self, held: Iterable[Held], now_s: float) -> None:
        """These lost their executor before they began; they were handed over before all that waits."""
        stranded = list(held)
        for one in stranded:
            one.strand(now_s)
        self._waiting.extendleft(reversed(stranded))

    def unblock(self, now_s: float) -> None:
        """Take back what waits behind runs that take too long."""
        for executor in self._executors.values():
            if executor.is_blocked(now_s):
                executor.stuck = True
                self.strand(executor.take_back(), now_s)

    def give_up(self, wanted: Callable[[Held], bool]) -> list[Held]:
        """Let go of those waiting ones that are `wanted`."""
        given_up = [held for held in self._waiting if wanted(held)]
        self._waiting = collections.deque(held for held in self._waiting if not wanted(held))
        return given_up

    def place(self, now_s: float) -> list[Executor]:
        """Give out what waits, in order, as far as there is somebody for it; answers who got something."""
        given: dict[int, Executor] = {}
        free = [executor for executor in self._executors.values() if executor.takes_work and not executor.held]
        for executor in free:
            if not self._waiting:
                break
            held = self._waiting[0]
            held.expect(self._expectations)
            if held.attempt.kind in executor.kinds and executor.put(held, now_s):
                self._waiting.popleft()
                given[executor.number] = executor
        if self._waiting:
            self._place_ahead(given, now_s)
        for executor in given.values():
            executor.announce()
        return list(given.values())

    def _place_ahead(self, given: dict[int, Executor], now_s: float) -> None:
        least = [
            (executor.expected_ms, executor.number, executor)
            for executor in self._executors.values()
            if executor.takes_ahead and executor.held
        ]
        heapq.heapify(least)
        while self._waiting and least:
            held, (expected_ms, number, executor) = self._waiting[0], least[0]
            held.expect(self._expectations)
            if not held.may_wait_behind(expected_ms):
                return
            if held.attempt.kind not in executor.kinds or not executor.put(held, now_s):
                heapq.heappop(least)
                continue
            self._waiting.popleft()
            given[number] = executor
            heapq.heapreplace(least, (executor.expected_ms, number, executor))
