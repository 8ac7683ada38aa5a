"""Runs the attempts of one pool on forked executors, each at most once.

    hand_over ─▶ waiting ─▶ free executors, one each ─▶ the rest behind those with the least expected work
                   ▲  │                                       │
                   │  └─ nobody within 100 ms ─▶ unstarted    ├─ ends ─▶ completed
                   └────── taken back from behind a long run ─┤
                   └────── not taken by one that died ────────┴─ dies ─▶ its leavings killed ─▶ completed (crashed)

An executor is filled with what it should finish in 50 ms, so that short runs flow without a pause and long ones never
have anything behind them. The backend knows no store; what it cannot run goes back through the sink.
"""

import asyncio
import collections
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.completions import CompletionBells
from runwick_supervisor.events import EventKind, ExecutorEvent, ignore
from runwick_supervisor.executor import Executor, Held
from runwick_supervisor.expectations import AHEAD_MS, SHORT_MS, Expectations
from runwick_supervisor.processes import Ending
from runwick_supervisor.seats import Seats
from runwick_supervisor.zygote_handle import Zygote

ATTEMPTS_MAX: Final = 512
"""Attempts in the hand-off of one worker beyond those that run."""
PAYLOADS_MAX_BYTES: Final = 16 * 1024 * 1024

_WAIT_MAX_S: Final = 0.1
"""How long an attempt may wait here for an executor before it is given up."""
_WATCH_S: Final = 0.015
_FAILED_BOOTS_MAX: Final = 3


class ExecutorBackend:
    """Implements `runwick.contracts.backends.Backend` for one pool.

    Args:
        zygote: has booted; it may serve several backends, and whoever booted it stops it after them.
        pool: the pool's name, for messages.
        executors: how many processes.
        clock: for the times in outcomes.
        record_usage: whether outcomes say what the attempt cost.
        first_executor: the number of the first executor; numbers are unique in a worker.
        attempts_max, payloads_max_bytes: what may wait behind running attempts. Pools share the worker's.
        on_event: hears of births and deaths, on the event loop.
    """

    name = "executors"

    def __init__(
        self,
        zygote: Zygote,
        pool: str,
        executors: int,
        clock: Clock,
        record_usage: bool,
        *,
        first_executor: int = 1,
        attempts_max: int = ATTEMPTS_MAX,
        payloads_max_bytes: int = PAYLOADS_MAX_BYTES,
        on_event: Callable[[ExecutorEvent], None] = ignore,
    ) -> None:
        self._zygote = zygote
        self._pool = pool
        self._numbers = range(first_executor, first_executor + executors)
        self._clock = clock
        self._record_usage = record_usage
        self._attempts_max = attempts_max
        self._payloads_max_bytes = payloads_max_bytes
        self._on_event = on_event
        self._expectations = Expectations()
        self._waiting: collections.deque[Held] = collections.deque()
        self._dying = 0
        """Attempts whose executor is dead and whose leavings are being killed."""
        self._payload_bytes = 0
        self._burials: set[asyncio.Task[None]] = set()
        self._watch: asyncio.TimerHandle | None = None

    async def start(self, sink: Sink) -> None:
        """Bring the executors up.

        Raises:
            ConfigurationError: they were not ready in time (``boot_timeout``); none is left.
        """
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._bells = CompletionBells(self._collect)
        self._seats = Seats(
            self._zygote,
            self._numbers,
            record_usage=self._record_usage,
            bells=self._bells,
            arrived=self._arrived,
            died=self._died,
            on_event=self._on_event,
        )
        self._zygote.keep()
        self._zygote.on_failed_boot.append(self._zygote_failed)
        try:
            await self._seats.fill()
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise ConfigurationError([Problem("boot_timeout", f"pool {self._pool}", str(error))]) from None
            raise

    # What the engine asks ---------------------------------------------------------------------------------------

    def room(self) -> Room:
        free = queued = capacity = left = 0
        deepest = self._expectations.runs_in(AHEAD_MS) - 1
        for executor in self._seats.living.values():
            held = len(executor.held)
            queued += max(0, held - 1)
            if not executor.takes_work:
                continue
            free += not held
            if not executor.stuck:
                capacity += max(0, deepest)
                left += max(0, self._expectations.runs_in(AHEAD_MS - executor.expected_ms) - (not held))
        capacity = min(capacity, self._attempts_max)
        ahead = 0 if self._waiting else max(0, min(left, self._attempts_max - queued))
        payload_bytes = self._payloads_max_bytes - self._payload_bytes
        free = max(0, free - len(self._waiting))
        worthwhile = payload_bytes > 0 and (free > 0 or 0 < capacity <= 2 * ahead)
        return Room(free=free, ahead=ahead, payload_bytes=max(0, payload_bytes), worthwhile=worthwhile)

    def hand_over(self, attempts: Sequence[Attempt]) -> None:
        now_s = self._loop.time()
        self._payload_bytes += sum(attempt.payload_bytes for attempt in attempts)
        self._waiting.extend(Held(attempt, now_s) for attempt in attempts)
        self._place(now_s)

    def take_back(self) -> Sequence[Attempt]:
        taken_back = [*self._waiting]
        self._waiting.clear()
        for executor in self._seats.living.values():
            taken_back += executor.take_back()
        return self._let_go(taken_back)

    def next_completion_ms(self) -> float | None:
        heads = [executor.held[0].expected_ms for executor in self._seats.living.values() if executor.held]
        return min(heads) if heads else None

    def running(self) -> int:
        held = sum(len(executor.held) for executor in self._seats.living.values())
        return held + len(self._waiting) + self._dying

    def stop_runs(self, attempts: Sequence[Attempt]) -> None:
        wanted = {attempt.attempt_id for attempt in attempts}
        now_s = self._loop.time()
        for executor in self._seats.living.values():
            if any(held.attempt.attempt_id in wanted for held in executor.held):
                self._strand(executor.take_back(), now_s)
                if any(held.attempt.attempt_id in wanted for held in executor.held):
                    executor.kill((OutcomeKind.INTERRUPTED, "lease_lost"))
        unstarted = [held for held in self._waiting if held.attempt.attempt_id in wanted]
        self._waiting = collections.deque(held for held in self._waiting if held.attempt.attempt_id not in wanted)
        self._give_up(unstarted)
        self._place(now_s)

    def stop_by_force(self) -> None:
        self._seats.filling = False
        for executor in self._seats.living.values():
            self._strand(executor.take_back(), self._loop.time())
            if executor.held:
                executor.kill((OutcomeKind.INTERRUPTED, "worker_stopping"))
        self._give_up_waiting()

    async def stop(self) -> None:
        await self._seats.empty()
        self._give_up_waiting()
        while self._burials:
            await asyncio.gather(*self._burials)
        await self._zygote.sweep()
        self._zygote.on_failed_boot.remove(self._zygote_failed)
        self._bells.close()
        if self._watch is not None:
            self._watch.cancel()

    # What the executors say -------------------------------------------------------------------------------------

    def _collect(self, executors: Iterable[Executor]) -> int:
        ended: list[Completion] = []
        now_s = self._loop.time()
        for executor in executors:
            executor.collect(ended, self._expectations, now_s)
            self._hear_no_more_of_the_condemned(executor)
        if ended:
            self._let_go_of_payloads(completion.attempt for completion in ended)
            if self._waiting:
                self._place(now_s)
            self._sink.completed(ended)
            self._sink.room_changed()
        return len(ended)

    def _arrived(self) -> None:
        self._place(self._loop.time())
        self._sink.room_changed()

    def _died(self, executor: Executor, ending: Ending) -> None:
        """Sort out what it held: ended, begun, or not begun."""
        ended: list[Completion] = []
        if executor.violation is None:
            executor.collect(ended, self._expectations, self._loop.time())
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        victims = executor.autopsy(
            ending, now_ms=self._clock.now_ms(), boot_ns=boot_ns, record_usage=self._record_usage
        )
        self._dying += len(victims)
        if executor.killed_for is None and not executor.stopping:
            attempt = victims[0].attempt if victims else None
            self._tell(EventKind.EXECUTOR_DIED, executor, f"died: {ending}", attempt)
        self._strand(executor.held, self._loop.time())
        if not self._seats.filling:
            self._give_up_waiting()
        self._let_go_of_payloads(completion.attempt for completion in ended)
        if ended:
            self._sink.completed(ended)
        burial = self._loop.create_task(self._bury(victims))
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)
        self._place(self._loop.time())
        self._sink.room_changed()

    async def _bury(self, victims: list[Completion]) -> None:
        """Report the ends of what a dead executor had taken, when nothing that it started lives any more."""
        await self._zygote.sweep()
        self._dying -= len(victims)
        if victims:
            self._let_go_of_payloads(completion.attempt for completion in victims)
            self._sink.completed(victims)

    def _zygote_failed(self, reason: str) -> None:
        if self._zygote.failed_boots >= _FAILED_BOOTS_MAX and not self._seats.living:
            self._sink.failed(reason)

    # Who gets what ----------------------------------------------------------------------------------------------

    def _place(self, now_s: float) -> None:
        """Hand on what waits, in order, as far as there is somebody for it."""
        touched: dict[int, Executor] = {}
        free = collections.deque(e for e in self._seats.living.values() if e.takes_work and not e.held)
        while self._waiting and free:
            executor = free.popleft()
            self._waiting[0].expect(self._expectations)
            if executor.put(self._waiting[0], now_s):
                self._waiting.popleft()
                touched[executor.number] = executor
        self._place_ahead(touched, now_s)
        for executor in touched.values():
            executor.announce()
            self._hear_no_more_of_the_condemned(executor)
        self._arm_watch()

    def _place_ahead(self, touched: dict[int, Executor], now_s: float) -> None:
        least = [
            (executor.expected_ms, executor.number, executor)
            for executor in self._seats.living.values()
            if self._waiting and executor.takes_work and executor.held and not executor.stuck
        ]
        heapq.heapify(least)
        while self._waiting and least:
            held, (expected_ms, number, executor) = self._waiting[0], least[0]
            held.expect(self._expectations)
            if not held.known or held.expected_ms > SHORT_MS or expected_ms + held.expected_ms > AHEAD_MS:
                return
            if not executor.put(held, now_s):
                heapq.heappop(least)
                continue
            self._waiting.popleft()
            touched[number] = executor
            heapq.heapreplace(least, (executor.expected_ms, number, executor))

    def _arm_watch(self) -> None:
        if self._watch is None and (
            self._waiting or any(len(executor.held) > 1 for executor in self._seats.living.values())
        ):
            self._watch = self._loop.call_later(_WATCH_S, self._look)

    def _look(self) -> None:
        """Nobody waits behind a long run, and nobody waits here for long."""
        self._watch = None
        now_s = self._loop.time()
        for executor in self._seats.living.values():
            if executor.is_blocked(now_s):
                executor.stuck = True
                self._strand(executor.take_back(), now_s)
        self._place(now_s)
        given_up = [held for held in self._waiting if now_s - held.waits_since_s >= _WAIT_MAX_S]
        self._waiting = collections.deque(held for held in self._waiting if now_s - held.waits_since_s < _WAIT_MAX_S)
        self._give_up(given_up)

    def _strand(self, held: Iterable[Held], now_s: float) -> None:
        """These lost their executor before they began: they were handed over before all that waits."""
        stranded = list(held)
        for one in stranded:
            one.strand(now_s)
        self._waiting.extendleft(reversed(stranded))

    def _give_up_waiting(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        self._give_up(waiting)

    def _give_up(self, held: Sequence[Held]) -> None:
        if held:
            self._sink.unstarted(self._let_go(held))
            self._sink.room_changed()

    def _let_go(self, held: Sequence[Held]) -> list[Attempt]:
        attempts = [one.attempt for one in held]
        self._let_go_of_payloads(attempts)
        return attempts

    def _let_go_of_payloads(self, attempts: Iterable[Attempt]) -> None:
        self._payload_bytes -= sum(attempt.payload_bytes for attempt in attempts)

    def _hear_no_more_of_the_condemned(self, executor: Executor) -> None:
        if executor.violation is not None:
            self._bells.remove(executor)
            self._tell(EventKind.EXECUTOR_CONDEMNED, executor, f"is killed for what it wrote: {executor.violation}")

    def _tell(self, kind: EventKind, executor: Executor, text: str, attempt: Attempt | None = None) -> None:
        self._on_event(ExecutorEvent(kind=kind, text=text, executor=executor.number, pid=executor.pid, attempt=attempt))
