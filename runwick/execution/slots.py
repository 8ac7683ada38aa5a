"""What the backends of this process have in common: the slots of one pool, and the attempts in them.

    hand_over ─▶ held ─┬─ seized by its run ─▶ begun ─▶ ended ─▶ completed
                       │                        └─ goes on after its limit ─▶ given up; its slot stays taken
                       └─ seized by who takes it back ─▶ unstarted

All bookkeeping happens on the engine's loop. A run may be anywhere; it seizes its attempt, and reports its end.
"""

import abc
import asyncio
import functools
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt, Kind
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.outcomes import ErrorDetail, Outcome, OutcomeKind
from runwick.execution.invoke import Invoker
from runwick.execution.run import Run

GRACE_S: Final = 10.0
"""How long after its time limit a run that goes on may still end by itself, before its lease is let go."""

_ROOM_BYTES: Final = 16 * 1024 * 1024
"""Payloads lie in the attempts themselves; this only has to be more than a claim asks for."""
_NEWEST_SHARE: Final = 0.2
"""How much the newest duration weighs in a kind's average."""


class Held:
    """One attempt that was handed over."""

    def __init__(self, attempt: Attempt) -> None:
        if attempt.payload is None:
            raise ValueError("an attempt is handed over with its payload")
        self.attempt = attempt
        self.payload = attempt.payload
        self.run = Run.of(attempt)
        self.task: asyncio.Task[None] | None = None
        """What runs it, where that is a task."""
        self.overdue = False
        """Its time limit passed; what ended it is then the limit."""
        self.giving_up: asyncio.TimerHandle | None = None
        self._first = threading.Lock()

    @property
    def limit_s(self) -> float | None:
        """Longest time that it may run."""
        limit_ms = self.attempt.policy.execution_timeout_ms
        return None if limit_ms is None else limit_ms / 1000

    def seize(self) -> bool:
        """Whether the caller comes first for it: the run that begins, or who takes it back. From any thread."""
        return self._first.acquire(blocking=False)

    def cancel(self) -> None:
        """Stop it, where it is a task. On the task's loop."""
        if self.task is not None:
            self.task.cancel()

    def time_out(self) -> None:
        self.overdue = True
        self.cancel()


class SlotBackend(abc.ABC):
    """Everything of `runwick.contracts.backends.Backend` but `name`, where an attempt runs, and `stop`.

    Args:
        invoker: may serve several pools; who made it closes it after them.
        concurrency: how many attempts run at once.
        clock: measures durations.
        grace_s: see `GRACE_S`.
    """

    def __init__(self, invoker: Invoker, *, concurrency: int, clock: Clock, grace_s: float = GRACE_S) -> None:
        self._invoker = invoker
        self._concurrency = concurrency
        self._clock = clock
        self._grace_s = grace_s
        self._held: dict[bytes, Held] = {}
        self._average_ms: dict[Kind, float] = {}

    async def start(self, sink: Sink) -> None:
        self._sink = sink
        self._engine = asyncio.get_running_loop()

    def room(self) -> Room:
        free = self._concurrency - len(self._held)
        return Room(free=free, ahead=0, payload_bytes=_ROOM_BYTES, worthwhile=free > 0)

    def hand_over(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            held = self._held[attempt.attempt_id] = Held(attempt)
            self._launch(held)

    def take_back(self) -> Sequence[Attempt]:
        return self._drop(list(self._held.values()))

    def next_completion_ms(self) -> float | None:
        running = [held.attempt.kind for held in self._held.values()]
        return min((self._average_ms.get(kind, math.inf) for kind in running), default=None)

    def running(self) -> int:
        return len(self._held)

    def stop_runs(self, attempts: Sequence[Attempt]) -> None:
        asked = [held for attempt in attempts if (held := self._held.get(attempt.attempt_id)) is not None]
        dropped = self._drop(asked)
        for held in asked:
            if held.attempt.attempt_id in self._held:
                self._interrupt(held)
        if dropped:
            self._sink.unstarted(dropped)

    def stop_by_force(self) -> None:
        self.stop_runs([held.attempt for held in self._held.values()])

    # Where a run is --------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _launch(self, held: Held) -> None:
        """Have it run soon. On the engine's loop."""

    @abc.abstractmethod
    def _interrupt(self, held: Held) -> None:
        """Stop what has begun, if that is possible. On the engine's loop."""

    @abc.abstractmethod
    def _tell_engine(self, function: Callable[[], object]) -> None:
        """Have `function` called on the engine's loop. From where runs are."""

    async def _run_async(self, held: Held) -> None:
        """Run it as a task, which is cancelled at its time limit."""
        if not self._begin(held):
            return
        timer = None
        if held.limit_s is not None:
            timer = asyncio.get_running_loop().call_later(held.limit_s, held.time_out)
        started_s = self._clock.steady_s()
        outcome = await self._invoker.invoke(held.run, held.payload)
        if timer is not None:
            timer.cancel()
        self._report(held, outcome, started_s)

    def _run_blocking(self, held: Held) -> None:
        """Run it on the calling thread, where nothing can stop it."""
        if not self._begin(held):
            return
        started_s = self._clock.steady_s()
        self._report(held, self._invoke_blocking(held), started_s)

    def _invoke_blocking(self, held: Held) -> Outcome:
        return self._invoker.invoke_blocking(held.run, held.payload)

    def _begin(self, held: Held) -> bool:
        if not held.seize():
            return False
        if held.limit_s is not None:
            self._tell_engine(functools.partial(self._expect_end, held, held.limit_s + self._grace_s))
        return True

    def _report(self, held: Held, outcome: Outcome, started_s: float) -> None:
        took_s = self._clock.steady_s() - started_s
        if held.limit_s is not None and (held.overdue or took_s >= held.limit_s):
            outcome = _timed_out(outcome)
        self._tell_engine(functools.partial(self._end, held, outcome, took_s * 1000))

    # On the engine's loop --------------------------------------------------------------------------------------------

    def _expect_end(self, held: Held, within_s: float) -> None:
        if held.attempt.attempt_id in self._held:
            held.giving_up = self._engine.call_later(within_s, self._sink.gave_up, [held.attempt])

    def _end(self, held: Held, outcome: Outcome, took_ms: float) -> None:
        del self._held[held.attempt.attempt_id]
        if held.giving_up is not None:
            held.giving_up.cancel()
        kind = held.attempt.kind
        average_ms = self._average_ms.get(kind, took_ms)
        self._average_ms[kind] = average_ms + _NEWEST_SHARE * (took_ms - average_ms)
        self._sink.completed([Completion(held.attempt, outcome)])
        self._sink.room_changed()

    def _drop(self, asked: Iterable[Held]) -> list[Attempt]:
        """Forget those that have not begun, and now never will."""
        dropped = [held for held in asked if held.seize()]
        for held in dropped:
            del self._held[held.attempt.attempt_id]
        return [held.attempt for held in dropped]


def _timed_out(outcome: Outcome) -> Outcome:
    """The end of a run that took too long, whatever it returned or raised in the end."""
    error = outcome.error or ErrorDetail("time limit", "its handler returned after the time limit")
    return msgspec.structs.replace(
        outcome, kind=OutcomeKind.TIMED_OUT, code="execution_timed_out", error=error, result=None
    )
