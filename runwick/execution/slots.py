"""What the backends of this process have in common: the slots of one pool, and the attempts in them.

    hand_over ─▶ held ─┬─ seized by its run ─▶ begun ─▶ ended ─▶ completed
                       │                        └─ asked to stop ─▶ goes on ─▶ given up; its slot stays taken
                       └─ seized by who takes it back ─▶ unstarted

    asked to stop ────────────────── half of the bound ─────────── bound
    token; a task is cancelled       the task of one that takes    what goes on is given up; what is being closed
    unless it could see the token    its context is cancelled too  has until its cleanup budget is over

All bookkeeping happens on the engine's loop. A run may be anywhere; it seizes its attempt, and reports its end. Nothing
here can stop a run that does not look; `runwick_supervisor` can.
"""

import abc
import asyncio
import functools
import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from runwick.contracts.activity import ExecutorActivity, Mark, StackAnswer
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt, Kind
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import HealthStatus, RoleHealth
from runwick.contracts.outcomes import Outcome
from runwick.execution.failures import Step
from runwick.execution.held import Held
from runwick.execution.invoke import Invoker

_ROOM_BYTES: Final = 16 * 1024 * 1024
"""Payloads lie in the attempts themselves; this only has to be more than a claim asks for."""
_NEWEST_SHARE: Final = 0.2
"""How much the newest duration weighs in a kind's average."""
_TO_END_S: Final = 0.1
"""What a task gets at least between its cancellation and being given up, so that it can end on its own loop."""
_CLEANUPS_S: Final = 1.0
"""How often those that close are looked at, at most: a timer for each would cost every attempt a wake-up."""


class SlotBackend(abc.ABC):
    """Everything of `runwick.contracts.backends.Backend` but `name`, where an attempt runs, and `stop`.

    Args:
        invoker: may serve several pools; who made it closes it after them.
        pool: whose slots these are.
        concurrency: how many attempts run at once.
        clock: measures durations.
        cancellation_grace_s: how long a run that is asked to stop at its time limit may still end by itself, before
            its lease is let go.
        cleanup_budget_s: how long the providers of one may take to close.
    """

    def __init__(
        self,
        invoker: Invoker,
        pool: str,
        *,
        concurrency: int,
        clock: Clock,
        cancellation_grace_s: float = 10.0,
        cleanup_budget_s: float = 10.0,
    ) -> None:
        self._invoker = invoker
        self._pool = pool
        self._clock = clock
        self._grace_s = cancellation_grace_s
        self._cleanup_s = cleanup_budget_s
        self._held: dict[bytes, Held] = {}
        self._free = list(range(1, concurrency + 1))
        """Numbers of the free slots, a heap."""
        self._ended = dict.fromkeys(self._free, 0)
        """How many attempts each slot has ended."""
        self._average_ms: dict[Kind, float] = {}
        self._watching: asyncio.TimerHandle | None = None

    async def start(self, sink: Sink) -> None:
        self._sink = sink
        self._engine = asyncio.get_running_loop()

    def room(self) -> Room:
        free = len(self._free)
        return Room(free=free, ahead=0, payload_bytes=_ROOM_BYTES, worthwhile=free > 0)

    def hand_over(self, attempts: Sequence[Attempt], deadline_s: float) -> None:
        """The deadline changes nothing here: nobody can end a run at it."""
        for attempt in attempts:
            held = self._held[attempt.attempt_id] = Held(attempt, heapq.heappop(self._free), self._clock)
            self._launch(held)
        if self._watching is None:
            self._watch_cleanups()

    def extend(self, deadlines_s: Mapping[bytes, float]) -> None:
        return  # see `hand_over`

    def take_back(self) -> Sequence[Attempt]:
        return self._drop(list(self._held.values()))

    def next_completion_ms(self) -> float | None:
        running = [held.attempt.kind for held in self._held.values()]
        return min((self._average_ms.get(kind, math.inf) for kind in running), default=None)

    def running(self) -> int:
        return len(self._held)

    def ask(self, attempts: Sequence[Attempt] | None, cause: CancellationCause, within_s: float) -> None:
        asked = list(self._held.values()) if attempts is None else self._known(each.attempt_id for each in attempts)
        dropped = self._drop(asked)
        for held in asked:
            if held.attempt.attempt_id in self._held:
                self._stop(held, cause, within_s)
        if dropped:
            self._sink.unstarted(dropped)

    def doing(self) -> Sequence[ExecutorActivity]:
        held = {each.slot: each for each in self._held.values()}
        return [
            held[slot].activity(self._pool, ended)
            if slot in held
            else ExecutorActivity(number=slot, pool=self._pool, phase="idle", attempts=ended)
            for slot, ended in self._ended.items()
        ]

    def marks(self) -> Sequence[Mark]:
        return [mark for held in self._held.values() if (mark := held.mark()) is not None]

    def look(self, attempt_ids: Sequence[bytes]) -> None:
        for held in self._known(attempt_ids):
            if text := held.stack():
                self._sink.looked(StackAnswer(held.attempt.attempt_id, text))

    def health(self) -> RoleHealth:
        role, slots = f"pool {self._pool}", len(self._ended)
        lost = sum(held.is_given_up for held in self._held.values())
        if lost == 0:
            return RoleHealth(role, HealthStatus.HEALTHY)
        text = f"{lost} of {slots} slots are taken by runs that go on although they were asked to stop"
        if lost < slots:
            return RoleHealth(role, HealthStatus.DEGRADED, "executors_missing", text)
        return RoleHealth(role, HealthStatus.UNHEALTHY, "no_executors", text)

    # Where a run is --------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _launch(self, held: Held) -> None:
        """Have it run soon. On the engine's loop."""

    @abc.abstractmethod
    def _interrupt(self, held: Held) -> None:
        """Have `held.interrupt` called where its task is. On the engine's loop."""

    @abc.abstractmethod
    def _tell_engine(self, function: Callable[[], object]) -> None:
        """Have `function` called on the engine's loop. From where runs are."""

    async def _run_async(self, held: Held) -> None:
        """Run it as a task, which can be cancelled."""
        if not self._begin(held):
            return
        outcome = await self._invoker.invoke(held.run, held.payload, token=held.token, moved=held.moved)
        self._report(held, outcome)

    def _run_blocking(self, held: Held) -> None:
        """Run it on the calling thread, where only its token tells it to stop."""
        if self._begin(held):
            self._report(held, self._invoke_blocking(held))

    def _invoke_blocking(self, held: Held) -> Outcome:
        return self._invoker.invoke_blocking(held.run, held.payload, token=held.token, moved=held.moved)

    def _begin(self, held: Held) -> bool:
        if not held.seize():
            return False
        held.begin()
        if held.limit_s is not None:
            self._tell_engine(functools.partial(self._expect_end, held, held.limit_s))
        return True

    def _report(self, held: Held, outcome: Outcome) -> None:
        held.thread = None
        self._tell_engine(functools.partial(self._end, held, outcome, held.took_s() * 1000))

    # On the engine's loop --------------------------------------------------------------------------------------------

    def _expect_end(self, held: Held, within_s: float) -> None:
        if held.attempt.attempt_id in self._held:
            held.limiting = self._engine.call_later(within_s, self._end_overdue, held)

    def _end_overdue(self, held: Held) -> None:
        self._sink.asked(held.attempt, CancellationCause.TIMEOUT)
        self._stop(held, CancellationCause.TIMEOUT, self._grace_s)

    def _stop(self, held: Held, cause: CancellationCause, within_s: float) -> None:
        """Ask a run that has begun: token now, its task now or at half of the bound, and no more waiting after that."""
        held.token.ask(cause)
        now_s = self._engine.time()
        until_s = now_s + within_s
        if held.task is not None and self._invoker.may_be_interrupted(held.run):
            waits_s = within_s / 2 if self._invoker.takes_context(held.run) else 0.0
            held.interrupting = self._sooner(held.interrupting, now_s + waits_s, self._interrupt, held)
            until_s = max(until_s, held.interrupting.when() + _TO_END_S)
        held.giving_up = self._sooner(held.giving_up, until_s, self._give_up, held)

    def _sooner(
        self, timer: asyncio.TimerHandle | None, at_s: float, function: Callable[[Held], None], held: Held
    ) -> asyncio.TimerHandle:
        """The earlier one: asking again never gives more time."""
        if timer is not None:
            if timer.when() <= at_s:
                return timer
            timer.cancel()
        return self._engine.call_at(at_s, function, held)

    def _give_up(self, held: Held) -> None:
        held.giving_up = None
        if held.step is not Step.CLOSE or CancellationCause.LEASE_LOST in held.token.causes:
            self._let_go(held)  # otherwise it has until its cleanup budget is over

    def _watch_cleanups(self) -> None:
        self._watching = None
        for held in list(self._held.values()):
            since_s = held.closing_since_s
            if since_s is not None and self._clock.steady_s() - since_s >= self._cleanup_s:
                self._let_go(held)
        if self._held:
            self._watching = self._engine.call_later(min(_CLEANUPS_S, self._cleanup_s), self._watch_cleanups)

    def _let_go(self, held: Held) -> None:
        if not held.is_given_up:
            held.is_given_up = True
            self._sink.gave_up([held.attempt])

    def _end(self, held: Held, outcome: Outcome, took_ms: float) -> None:
        held.forget_timers()
        self._vacate(held)
        self._ended[held.slot] += 1
        kind = held.attempt.kind
        average_ms = self._average_ms.get(kind, took_ms)
        self._average_ms[kind] = average_ms + _NEWEST_SHARE * (took_ms - average_ms)
        self._sink.completed([Completion(held.attempt, outcome)])
        self._sink.room_changed()

    def _known(self, attempt_ids: Iterable[bytes]) -> list[Held]:
        return [held for each in attempt_ids if (held := self._held.get(each)) is not None]

    def _drop(self, asked: Iterable[Held]) -> list[Attempt]:
        """Forget those that have not begun, and now never will."""
        dropped = [held for held in asked if held.seize()]
        for held in dropped:
            self._vacate(held)
        return [held.attempt for held in dropped]

    def _vacate(self, held: Held) -> None:
        del self._held[held.attempt.attempt_id]
        heapq.heappush(self._free, held.slot)
