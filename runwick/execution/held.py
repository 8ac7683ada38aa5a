"""One attempt in a slot of this process: who has it, where it stands, and what was asked of it.

    handed over ─┬─ seized by its run ─▶ begun ─▶ decode … close ─▶ ended
                 └─ seized by who takes it back

A run may be in any thread. What it tells about itself are plain attributes that only it writes; the timers belong to
the engine's loop.
"""

import asyncio
import threading

from runwick.contracts.activity import ExecutorActivity, Mark
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.cancelling import CancellationCause
from runwick.execution.cancellation import Token
from runwick.execution.failures import Step
from runwick.execution.run import Run
from runwick.execution.stacks import stack_of_task, stack_of_thread


class Held:
    """One attempt that was handed over.

    Args:
        attempt: with its payload.
        slot: the slot's number, from 1.
        clock: measures how long it runs.
    """

    def __init__(self, attempt: Attempt, slot: int, clock: Clock) -> None:
        if attempt.payload is None:
            raise ValueError("an attempt is handed over with its payload")
        self.attempt = attempt
        self.payload = attempt.payload
        self.slot = slot
        self.run = Run.of(attempt)
        self.token = Token()
        self.step = Step.DECODE
        self.begun_at_ms: int | None = None
        self.closing_since_s: float | None = None
        """On the steady clock: since when its providers are being closed."""
        self.task: asyncio.Task[None] | None = None
        """What runs it, where that is a task."""
        self.thread: int | None = None
        """The thread that it runs on, while it does."""
        self.limiting: asyncio.TimerHandle | None = None
        self.interrupting: asyncio.TimerHandle | None = None
        self.giving_up: asyncio.TimerHandle | None = None
        self.is_given_up = False
        self._clock = clock
        self._begun_s = 0.0
        self._is_interrupted = False
        self._first = threading.Lock()

    @property
    def limit_s(self) -> float | None:
        """Longest time that it may run."""
        limit_ms = self.attempt.policy.execution_timeout_ms
        return None if limit_ms is None else limit_ms / 1000

    def seize(self) -> bool:
        """Whether the caller comes first for it: the run that begins, or who takes it back. From any thread."""
        return self._first.acquire(blocking=False)

    def begin(self) -> None:
        """It begins, having seized it. Where it runs."""
        self.begun_at_ms = self._clock.now_ms()
        self._begun_s = self._clock.steady_s()
        self.thread = threading.get_ident()

    def took_s(self) -> float:
        """How long it has run."""
        return self._clock.steady_s() - self._begun_s

    def moved(self, step: Step) -> None:
        """Its run is at that step now. Where it runs."""
        self.step = step
        if step is Step.CLOSE:
            self.closing_since_s = self._clock.steady_s()
            # A plain handler may have kept the very loop whose timer would have asked.
            if self.limit_s is not None and self.took_s() >= self.limit_s:
                self.token.ask(CancellationCause.TIMEOUT)

    def interrupt(self) -> None:
        """Cancel its task, once: a second time would end timeouts of the handler's own. What is being closed is left
        alone, for that is usually what commits. On the task's loop."""
        if self.task is not None and self.step is not Step.CLOSE and not self._is_interrupted:
            self._is_interrupted = True
            self.task.cancel()

    def stack(self) -> str:
        """Where its run is now; empty when nothing runs it. From any thread."""
        thread = self.thread
        if thread is None:
            return ""
        text = stack_of_thread(thread) if self.task is None else stack_of_task(self.task, thread)
        return "" if self.thread is None else text  # it ended meanwhile, and the thread may be another's by now

    def forget_timers(self) -> None:
        """It has ended. On the engine's loop."""
        for timer in (self.limiting, self.interrupting, self.giving_up):
            if timer is not None:
                timer.cancel()

    def mark(self) -> Mark | None:
        """When it began; None before."""
        if self.begun_at_ms is None:
            return None
        return Mark(self.attempt.job, self.attempt.claim_token, self.begun_at_ms)

    def activity(self, pool: str, attempts: int) -> ExecutorActivity:
        """What its slot does, which has ended so many attempts before it."""
        if self.begun_at_ms is None:
            return ExecutorActivity(number=self.slot, pool=pool, phase="idle", attempts=attempts)
        return ExecutorActivity(
            number=self.slot,
            pool=pool,
            phase="stopping" if self.token.is_set() else self.step.name.lower(),
            job_id=self.attempt.job_id,
            attempt_id=self.attempt.attempt_id,
            name=self.attempt.kind.name,
            begun_at_ms=self.begun_at_ms,
            attempts=attempts,
        )
