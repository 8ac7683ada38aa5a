"""The inline backend: attempts of one pool as tasks on the engine's own event loop. It starts no thread, no process.

    hand_over ─▶ waiting ─▶ begun ─▶ completed ─▶ sink
                    └─▶ take_back

It suits async handlers and tests. A plain handler runs in the loop itself: while it runs nothing else does, neither
other attempts nor the renewal of leases, so work that takes longer than a moment belongs on executors. A handler is
stopped by cancelling its task, at its time limit too; one that is plain, or that swallows the cancellation, runs to
its end.
"""

import asyncio
import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt, Kind
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.declarations.catalog import Catalog
from runwick.execution.invoke import Invoker
from runwick.execution.run import Run

_ROOM_BYTES = 16 * 1024 * 1024
"""Payloads lie in the attempts themselves; this only has to be more than a claim asks for."""
_NEWEST_SHARE = 0.2
"""How much the newest duration weighs in a kind's average."""


class _Held:
    """One attempt that was handed over."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.begun = False
        self.overdue = False
        """Its time limit passed; what ended it is then the limit."""
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def time_out(self) -> None:
        self.overdue = True
        self.cancel()


class InlineBackend:
    """Runs up to `concurrency` attempts at once. Implements `runwick.contracts.backends.Backend`."""

    name = "inline"

    def __init__(self, catalog: Catalog, *, concurrency: int, clock: Clock, record_usage: bool) -> None:
        self._concurrency = concurrency
        self._clock = clock
        self._invoker = Invoker(catalog, clock=clock, record_usage=record_usage, alone=False)
        self._sink: Sink | None = None
        self._held: dict[bytes, _Held] = {}
        self._average_ms: dict[Kind, float] = {}

    async def start(self, sink: Sink) -> None:
        self._sink = sink

    def room(self) -> Room:
        free = self._concurrency - len(self._held)
        return Room(free=free, ahead=0, payload_bytes=_ROOM_BYTES, worthwhile=free > 0)

    def hand_over(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            held = self._held[attempt.attempt_id] = _Held(attempt)
            held.task = asyncio.get_running_loop().create_task(self._run(held), name=f"runwick {attempt.kind.name}")

    def take_back(self) -> Sequence[Attempt]:
        return self._drop(held for held in self._held.values() if not held.begun)

    def next_completion_ms(self) -> float | None:
        running = [held.attempt.kind for held in self._held.values()]
        return min((self._average_ms.get(kind, math.inf) for kind in running), default=None)

    def running(self) -> int:
        return len(self._held)

    def stop_runs(self, attempts: Sequence[Attempt]) -> None:
        asked = [held for attempt in attempts if (held := self._held.get(attempt.attempt_id)) is not None]
        for held in asked:
            if held.begun:
                held.cancel()
        if unstarted := self._drop(held for held in asked if not held.begun):
            self._the_sink().unstarted(unstarted)

    def stop_by_force(self) -> None:
        self.stop_runs([held.attempt for held in self._held.values()])

    async def stop(self) -> None:
        """Wait until nothing runs and close what has process scope."""
        while tasks := [held.task for held in self._held.values() if held.task is not None]:
            await asyncio.wait(tasks)
        await self._invoker.close_async()

    async def _run(self, held: _Held) -> None:
        held.begun = True
        attempt = held.attempt
        if attempt.payload is None:
            raise ValueError("an attempt is handed over with its payload")
        started_s = self._clock.steady_s()
        run = Run.of(attempt)
        if self._invoker.needs_loop(run):
            with _time_limit(held):
                outcome = await self._invoker.invoke(run, attempt.payload)
            if held.overdue and outcome.kind is OutcomeKind.INTERRUPTED:
                outcome = _timed_out(outcome)
        else:
            with _outside_the_loop():
                outcome = self._invoker.invoke_blocking(run, attempt.payload)
        self._learn(attempt.kind, (self._clock.steady_s() - started_s) * 1000)
        del self._held[attempt.attempt_id]
        sink = self._the_sink()
        sink.completed([Completion(attempt, outcome)])
        sink.room_changed()

    def _drop(self, unstarted: Iterable[_Held]) -> list[Attempt]:
        """Forget these, whose task has not taken its first step and now never will."""
        dropped = list(unstarted)
        for held in dropped:
            held.cancel()
            del self._held[held.attempt.attempt_id]
        return [held.attempt for held in dropped]

    def _learn(self, kind: Kind, took_ms: float) -> None:
        average_ms = self._average_ms.get(kind, took_ms)
        self._average_ms[kind] = average_ms + _NEWEST_SHARE * (took_ms - average_ms)

    def _the_sink(self) -> Sink:
        if self._sink is None:
            raise RuntimeError("the backend was not started")
        return self._sink


@contextlib.contextmanager
def _time_limit(held: _Held) -> Iterator[None]:
    """Stop the run inside the block when it has taken as long as it may."""
    limit_ms = held.attempt.policy.execution_timeout_ms
    if limit_ms is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(limit_ms / 1000, held.time_out)
    try:
        yield
    finally:
        timer.cancel()


def _timed_out(outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, kind=OutcomeKind.TIMED_OUT, code="execution_timed_out")


@contextlib.contextmanager
def _outside_the_loop() -> Iterator[None]:
    """Let a plain handler see no running loop, as on an executor, where its `asyncio.run` is right."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
