"""Sees to it that runs end when they must: time limits, requests to stop, slow closing. And has stacks written.

    limit over ─▶ ask TIMEOUT ─▶ ┐
    ask ─────────────────────▶ ──┼─▶ `Stopping` says what is due: interrupt · stack · SIGKILL ─▶ the executor's death
    closing overdue, memory ───▶ ┘                                                                is heard elsewhere

Before anything is done to an executor it is singled out: what waits behind its head is taken back and what it has
finished is collected, so that it holds the one run that is meant, or nothing.
"""

import math
from collections.abc import Callable
from typing import Final

from runwick.contracts.activity import StackAnswer
from runwick.contracts.attempts import Attempt
from runwick.contracts.cancelling import CancellationCause
from runwick_supervisor.executor import Executor
from runwick_supervisor.stopping import (
    CLEANUP_OVERDUE,
    LEAVES_WORK_LYING,
    WRITTEN_POLL_S,
    Act,
    Stopping,
    Verdict,
)

_ACTS_MAX: Final = 4
_LOOK_WITHIN_S: Final = 5.0
"""How long a stack that somebody wants to see is waited for; nothing else waits meanwhile. It is written as soon as the
executor has a core: on a machine that is overloaded, where stacks are wanted most, within seconds."""


class Overseer:
    """Of the executors of one pool. Whoever has it calls `attend` when `due_s` says so, or sooner."""

    def __init__(
        self,
        *,
        cancellation_grace_s: float,
        cleanup_budget_s: float,
        single_out: Callable[[Executor], None],
        asked: Callable[[Attempt, CancellationCause], None],
        looked: Callable[[StackAnswer], None],
    ) -> None:
        self._cancellation_grace_s = cancellation_grace_s
        self._cleanup_budget_s = cleanup_budget_s
        self._single_out = single_out
        self._asked = asked
        """Told of a run that is asked to stop since its time limit is over."""
        self._looked = looked
        self._looks: dict[Executor, tuple[bytes, float]] = {}
        """Whose stack is being written: for which attempt, and until when it is waited for."""

    def ask(
        self, executor: Executor, attempt_id: bytes, cause: CancellationCause, now_s: float, within_s: float
    ) -> None:
        """Ask this run to end within that time, unless it has ended meanwhile or was only waiting there."""
        self._single_out(executor)
        if executor.held and executor.held[0].attempt.attempt_id == attempt_id:
            executor.ask(cause, now_s, within_s, self._cleanup_budget_s)

    def condemn(self, executor: Executor, verdict: Verdict, now_s: float) -> None:
        """Its run shall end now; its handler is not asked."""
        if executor.killed_for is not None or not executor.held:
            return
        head = executor.held[0]
        self._single_out(executor)
        if executor.held and executor.held[0] is head:
            executor.stopping = executor.stopping or Stopping(now_s, self._cleanup_budget_s)
            executor.stopping.condemn(verdict, now_s)

    def look(self, executor: Executor, now_s: float) -> None:
        """Have the stack of its head written; it is told when that is done."""
        if executor.killed_for is not None or executor in self._looks or executor.progress().begun_at_ns is None:
            return
        if executor.dump():
            self._looks[executor] = (executor.held[0].attempt.attempt_id, now_s + _LOOK_WITHIN_S)

    def forget(self, executor: Executor) -> None:
        """It is dead."""
        self._looks.pop(executor, None)

    def due_s(self, executor: Executor, now_s: float) -> float:
        """When to attend to it again; never while nothing is asked of it."""
        if executor.killed_for is not None:
            return math.inf
        due_s = executor.limit_s(now_s)
        if executor.stopping is not None:
            due_s = min(due_s, executor.stopping.due_s(now_s, executor.closing_since_s(now_s)))
        if executor in self._looks:
            due_s = min(due_s, now_s + WRITTEN_POLL_S)
        return due_s

    def attend(self, executor: Executor, now_s: float) -> None:
        """Do whatever is due."""
        if executor.killed_for is not None:
            return
        if executor in self._looks:
            self._end_look(executor, now_s)
        if executor.limit_s(now_s) <= now_s:
            overdue = executor.held[0].attempt
            self.ask(executor, overdue.attempt_id, CancellationCause.TIMEOUT, now_s, self._cancellation_grace_s)
            if executor.held and executor.held[0].attempt is overdue:  # otherwise it has ended in this very moment
                self._asked(overdue, CancellationCause.TIMEOUT)
        for _ in range(_ACTS_MAX):
            if not self._next_act(executor, now_s):
                return

    def patrol(self, executor: Executor, now_s: float) -> None:
        """Now and then: what no time was set for."""
        if executor.stopping is None and executor.held:
            since_s = executor.closing_since_s(now_s)
            if since_s is not None and now_s - since_s >= self._cleanup_budget_s:
                self.condemn(executor, CLEANUP_OVERDUE, now_s)
            elif executor.leaves_work_lying(now_s):
                self._single_out(executor)
                if not executor.held:  # otherwise it has begun in this very moment
                    executor.kill(LEAVES_WORK_LYING)

    def _next_act(self, executor: Executor, now_s: float) -> bool:
        stopping = executor.stopping
        if stopping is None or executor.killed_for is not None:
            return False
        act = stopping.next(now_s, executor.closing_since_s(now_s), executor.stack_is_written(now_s))
        match act:
            case Act.INSIST:
                executor.interrupt(stopping)
            case Act.DUMP:
                executor.dump()
            case Act.KILL:
                self._single_out(executor)
                if executor.stopping is stopping:  # otherwise it has ended in this very moment
                    executor.kill(stopping.verdict)
        return act is not None

    def _end_look(self, executor: Executor, now_s: float) -> None:
        attempt_id, until_s = self._looks[executor]
        if executor.stack_is_written(now_s) or now_s >= until_s:
            del self._looks[executor]
            text = executor.take_stack()
            if text and executor.held and executor.held[0].attempt.attempt_id == attempt_id:
                self._looked(StackAnswer(attempt_id, text))
