"""Who gets what: the attempts that no executor has yet, and how they are given out.

    taken in ─▶ waiting, in order ─▶ one for each free executor ─▶ the rest behind whoever has least to do yet
                   ▲                                                 (what may run ahead and is short, 100 ms deep)
                   └── stranded: taken back from behind a run that takes too long, or from a dead executor

Who was made of another loading of the application may not know every kind: it gets only what it knows.

Order is kept: what cannot be placed holds back what stands behind it, and nothing more is asked for ahead meanwhile.
Nothing here waits or knows the time; the backend says when.
"""

import collections
import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from runwick.contracts.attempts import Attempt, Kind
from runwick_supervisor.executor import Executor
from runwick_supervisor.expectations import AHEAD_MS, SHORT_MS, Expectations
from runwick_supervisor.held import Held

REFILL_MS: Final = 20.0
"""Executors that have more to do than this need not be refilled yet."""
_EVEN_MS: Final = 1.0
"""Executors may differ by so much in what they have to do when much is given out at once."""
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

    def slack(self, now_s: float) -> Slack:
        """What could be handed over now."""
        free = queued = capacity = left = 0
        least_ms = AHEAD_MS
        runs_in = self._expectations.runs_in
        deepest = max(0, runs_in(AHEAD_MS) - 1)
        for executor in self._executors.values():
            held = len(executor.held)
            least_ms = min(least_ms, executor.left_ms(now_s))
            if held:
                queued += held - 1
            if not executor.takes_work:
                continue
            if not held:
                free += 1
            if deepest and executor.takes_ahead:
                capacity += deepest
                left += runs_in(AHEAD_MS - executor.load_ms(now_s)) if held else deepest
        ahead = 0 if self._waiting else max(0, min(left, self.ahead_max - queued))
        least_ms = least_ms if self._executors else 0.0
        return Slack(max(0, free - len(self._waiting)), ahead, min(capacity, self.ahead_max), least_ms)

    def refill_s(self, now_s: float) -> float:
        """When executors want to be refilled, on the loop's clock: when the first of them has little to do left, and
        not before its head ends, for until then nothing can be handed ahead where runs are not short."""
        due_ms = [
            max(executor.left_ms(now_s) - REFILL_MS, executor.head_left_ms(now_s))
            for executor in self._executors.values()
        ]
        return now_s + min(due_ms, default=0.0) / 1000

    def patience_s(self) -> float:
        """When the first of those that wait has waited for as long as it may, on the loop's clock."""
        return min((held.waits_since_s for held in self._waiting), default=math.inf) + WAIT_MAX_S

    def take_in(self, attempts: Iterable[Attempt], now_s: float, fenced_s: float) -> None:
        """These were handed over; they wait behind all others, and nobody may live past `fenced_s` who runs them."""
        self._waiting.extend([Held(attempt, now_s, fenced_s) for attempt in attempts])

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
        waiting, given = self._waiting, []
        for executor in self._executors.values():
            if not waiting:
                break
            if executor.takes_work and not executor.held:
                held = waiting[0]
                held.expect(self._expectations.expected_ms(held.attempt.kind))
                if held.attempt.kind in executor.kinds and executor.put(held, now_s):
                    waiting.popleft()
                    given.append(executor)
        if waiting:
            self._place_ahead(given, now_s)
        for executor in given:
            executor.announce()
        return given

    def _place_ahead(self, given: list[Executor], now_s: float) -> None:
        """Always to whoever has least to do; some runs at once, as long as that keeps them even."""
        loads = [
            (executor.load_ms(now_s), executor.number, executor)
            for executor in self._executors.values()
            if executor.takes_ahead and executor.held
        ]
        heapq.heapify(loads)
        while self._waiting and loads:
            load_ms, number, executor = loads[0]
            even_ms = min((other[0] for other in loads[1:3]), default=AHEAD_MS) + _EVEN_MS
            filled_ms, takes_more = self._fill(executor, load_ms, even_ms, now_s)
            if filled_ms > load_ms and executor not in given:
                given.append(executor)
            if not takes_more:
                heapq.heappop(loads)
            elif filled_ms > load_ms:
                heapq.heapreplace(loads, (filled_ms, number, executor))
            else:
                return

    def _fill(self, executor: Executor, load_ms: float, even_ms: float, now_s: float) -> tuple[float, bool]:
        """Put what waits behind the runs of this executor, until it has more than `even_ms` to do or the next one may
        not wait there; answers how much it has then, and False when it cannot take the next one at all."""
        waiting, put = self._waiting, executor.put
        kind: Kind | None = None
        expected_ms: float | None = None
        takes_kind = is_short = False
        while waiting and load_ms <= even_ms:
            held = waiting[0]
            attempt = held.attempt
            if attempt.kind is not kind:
                kind = attempt.kind
                expected_ms = self._expectations.expected_ms(kind)
                is_short = expected_ms is not None and expected_ms <= SHORT_MS
                takes_kind = kind in executor.kinds
            held.expect(expected_ms)
            if not is_short or not attempt.runs_ahead or load_ms + held.expected_ms > AHEAD_MS:
                break
            if not takes_kind or not put(held, now_s):
                return load_ms, False
            waiting.popleft()
            load_ms += held.expected_ms
        return load_ms, True
