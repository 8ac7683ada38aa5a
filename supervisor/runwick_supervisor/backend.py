"""Runs the attempts of one pool on forked executors, each at most once.

    hand_over ─▶ placement ─▶ executor ─┬─ ends ─▶ completed
                   ▲  │                 └─ dies ─▶ what it left is killed ─▶ completed: crashed, or stopped by force
                   │  └─ nobody within 100 ms ─▶ unstarted           │
                   └──── what it had not taken ◀─────────────────────┘

The backend owns the life of the executors and hears them; `placement` decides who gets what. It knows no store: what it
cannot run goes back through the sink.
"""

import asyncio
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
from runwick_supervisor.expectations import Expectations
from runwick_supervisor.placement import REFILL_MS, WAIT_MAX_S, Placement
from runwick_supervisor.processes import Ending
from runwick_supervisor.seats import Seats
from runwick_supervisor.zygote_handle import Zygote

ATTEMPTS_MAX: Final = 512
"""Attempts in the hand-off of one worker beyond those that run."""
PAYLOADS_MAX_BYTES: Final = 16 * 1024 * 1024

_WATCH_MIN_S: Final = 0.01
_WATCH_MAX_S: Final = 0.03
"""While anything waits, the next look is when executors want to be refilled, within these bounds."""
_UNHURRIED_MS: Final = 15.0
"""An executor with so much to do needs nobody to hear of each end: about as much as lies between two looks."""
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
        self._bells = CompletionBells(self._collect, self._nobody_waits)
        self._seats = Seats(
            self._zygote,
            self._numbers,
            record_usage=self._record_usage,
            bells=self._bells,
            arrived=self._arrived,
            died=self._died,
            failed=sink.failed,
            on_event=self._on_event,
        )
        self._placement = Placement(self._seats.living, self._expectations, self._attempts_max)
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
        free, ahead, capacity, least_ms = self._placement.slack()
        payload_bytes = max(0, self._payloads_max_bytes - self._payload_bytes)
        worthwhile = payload_bytes > 0 and (free > 0 or (0 < capacity <= 2 * ahead and least_ms <= REFILL_MS))
        return Room(free=free, ahead=ahead, payload_bytes=payload_bytes, worthwhile=worthwhile)

    def hand_over(self, attempts: Sequence[Attempt]) -> None:
        now_s = self._loop.time()
        self._payload_bytes += _payload_bytes(attempts)
        self._placement.take_in(attempts, now_s)
        self._place(now_s)

    def take_back(self) -> Sequence[Attempt]:
        for executor in self._seats.living.values():
            self._placement.strand(executor.take_back(), self._loop.time())
        return self._let_go(self._placement.give_up(_all))

    def next_completion_ms(self) -> float | None:
        heads = [executor.held[0].expected_ms for executor in self._seats.living.values() if executor.held]
        return min(heads) if heads else None

    def running(self) -> int:
        held = sum(len(executor.held) for executor in self._seats.living.values())
        return held + len(self._placement) + self._dying

    def stop_runs(self, attempts: Sequence[Attempt]) -> None:
        lost = {attempt.attempt_id for attempt in attempts}

        def is_lost(held: Held) -> bool:
            return held.attempt.attempt_id in lost

        now_s = self._loop.time()
        for executor in self._seats.living.values():
            if any(map(is_lost, executor.held)):
                self._placement.strand(executor.take_back(), now_s)
                # What is left it has taken; whatever stands before the last of that has ended, unheard yet.
                if executor.held and is_lost(executor.held[-1]):
                    executor.kill((OutcomeKind.INTERRUPTED, "lease_lost"))
        self._give_up(is_lost)
        self._place(now_s)

    def stop_by_force(self) -> None:
        self._seats.filling = False
        for executor in self._seats.living.values():
            self._placement.strand(executor.take_back(), self._loop.time())
            if executor.held:
                executor.kill((OutcomeKind.INTERRUPTED, "worker_stopping"))
        self._give_up(_all)

    async def stop(self) -> None:
        await self._seats.empty()
        self._give_up(_all)
        if self._burials:
            await asyncio.wait(self._burials)
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
            self._check(executor)
        if ended:
            self._payload_bytes -= _payload_bytes(completion.attempt for completion in ended)
            if len(self._placement):
                self._place(now_s)
            else:
                self._arm_watch(now_s)
            self._sink.completed(ended)
            self._sink.room_changed()
        return len(ended)

    def _arrived(self) -> None:
        self._place(self._loop.time())
        self._sink.room_changed()

    def _died(self, executor: Executor, ending: Ending) -> None:
        """Sort out what it held: ended, begun, or not begun."""
        if executor.violation is None:
            self._collect([executor])
        victims = executor.autopsy(
            ending,
            now_ms=self._clock.now_ms(),
            boot_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            record_usage=self._record_usage,
        )
        self._dying += len(victims)
        if executor.killed_for is None and not executor.stopping:
            attempt = victims[0].attempt if victims else None
            self._tell(EventKind.EXECUTOR_DIED, executor, f"died: {ending}", attempt)
        self._placement.strand(executor.held, self._loop.time())
        if not self._seats.filling:
            self._give_up(_all)
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
            self._payload_bytes -= _payload_bytes(completion.attempt for completion in victims)
            self._sink.completed(victims)

    def _zygote_failed(self, reason: str, is_final: bool) -> None:
        if is_final or (self._zygote.failed_boots >= _FAILED_BOOTS_MAX and not self._seats.living):
            self._sink.failed(reason)

    # Who waits ---------------------------------------------------------------------------------------------------

    def _place(self, now_s: float) -> None:
        for executor in self._placement.place(now_s):
            self._check(executor)
        self._arm_watch(now_s)

    def _arm_watch(self, now_s: float) -> None:
        """Look in a moment while anything waits, otherwise when the first time limit is over."""
        limits_s = [limit_s for e in self._seats.living.values() if (limit_s := e.time_limit_s()) is not None]
        if self._placement.needs_watching:
            refill_s = (self._placement.slack().least_ms - REFILL_MS) / 1000
            limits_s.append(now_s + min(max(refill_s, _WATCH_MIN_S), _WATCH_MAX_S))
        if not limits_s:
            return
        due_s = min(limits_s)
        if self._watch is not None:
            if self._watch.when() <= due_s:
                return
            self._watch.cancel()
        self._watch = self._loop.call_at(due_s, self._look)

    def _look(self) -> None:
        """Nobody waits behind a long run, nobody waits here for long, and nobody runs for longer than it may."""
        self._watch = None
        self._bells.look()
        now_s = self._loop.time()
        self._stop_overdue(now_s)
        self._placement.unblock(now_s)
        self._place(now_s)
        self._give_up(lambda held: now_s - held.waits_since_s >= WAIT_MAX_S)

    def _stop_overdue(self, now_s: float) -> None:
        for executor in self._seats.living.values():
            limit_s = executor.time_limit_s()
            if limit_s is not None and limit_s <= now_s:
                overdue = executor.held[0]
                self._placement.strand(executor.take_back(), now_s)
                # If it has taken another one since, the overdue one has ended in this very moment.
                if executor.held and executor.held[-1] is overdue:
                    executor.kill((OutcomeKind.TIMED_OUT, "execution_timed_out"))

    def _nobody_waits(self) -> bool:
        """Whether every executor has work for longer than it takes until the next look."""
        living = self._seats.living.values()
        return bool(living) and all(
            len(e.held) > 1 and e.takes_work and not e.stuck and e.expected_ms >= _UNHURRIED_MS for e in living
        )

    def _give_up(self, wanted: Callable[[Held], bool]) -> None:
        given_up = self._placement.give_up(wanted)
        if given_up:
            self._sink.unstarted(self._let_go(given_up))
            self._sink.room_changed()

    def _let_go(self, held: Iterable[Held]) -> list[Attempt]:
        attempts = [one.attempt for one in held]
        self._payload_bytes -= _payload_bytes(attempts)
        return attempts

    def _check(self, executor: Executor) -> None:
        """Hear no more of one that is condemned."""
        if executor.violation is not None:
            self._bells.remove(executor)
            self._tell(EventKind.EXECUTOR_CONDEMNED, executor, f"is killed for what it wrote: {executor.violation}")

    def _tell(self, kind: EventKind, executor: Executor, text: str, attempt: Attempt | None = None) -> None:
        self._on_event(ExecutorEvent(kind=kind, text=text, executor=executor.number, pid=executor.pid, attempt=attempt))


def _payload_bytes(attempts: Iterable[Attempt]) -> int:
    return sum([attempt.payload_bytes for attempt in attempts])


def _all(_: Held) -> bool:
    return True
