"""One executor as the parent sees it: a process, its hand-off, and the attempts that it holds.

    booting ─ready─▶ idle ⇄ busy (the head runs, the others wait behind it) ─▶ gone
                              └─ stuck: the head takes too long, what waited behind it was taken back

It knows nothing of the other executors; who gets what is the backend's decision.
"""

import asyncio
import collections
import os
from typing import Final

from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion
from runwick.contracts.outcomes import ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.usage import Usage
from runwick.execution.run import Run
from runwick_supervisor import processes
from runwick_supervisor.expectations import AHEAD_MS, SHORT_MS, Expectations
from runwick_supervisor.handoff import HandOffViolation, ParentEnd, RecordKind
from runwick_supervisor.processes import Ending

STUCK_MS: Final = 20.0
"""A head is given at least this long before what waits behind it is taken back."""
_PATIENCE: Final = 2.0
"""And this many times what it was expected to take."""


class Held:
    """One attempt in the backend's hands."""

    __slots__ = ("attempt", "expected_ms", "known", "stranded", "waits_since_s")

    def __init__(self, attempt: Attempt, waits_since_s: float) -> None:
        self.attempt = attempt
        self.waits_since_s = waits_since_s
        """On the loop's clock: since it was handed over, or since it first lost the executor it was given to."""
        self.stranded = False
        self.expected_ms = AHEAD_MS
        self.known = False
        """Whether `expected_ms` was learned; an unknown run fills an executor."""

    def expect(self, expectations: Expectations) -> None:
        """Learn what it should take, now."""
        expected_ms = expectations.expected_ms(self.attempt.kind)
        if expected_ms is not None:
            self.expected_ms, self.known = expected_ms, True

    def may_wait_behind(self, expected_ms: float) -> bool:
        """Whether it may be given to an executor that has so much to do yet."""
        return (
            self.attempt.runs_ahead
            and self.known
            and self.expected_ms <= SHORT_MS
            and expected_ms + self.expected_ms <= AHEAD_MS
        )

    def strand(self, now_s: float) -> None:
        """It lost its executor before it began. Its wait is counted from the first time that this happens."""
        if not self.stranded:
            self.waits_since_s, self.stranded = now_s, True


class Executor:
    """A forked process and what it holds."""

    def __init__(self, number: int, pid: int, pidfd: int, end: ParentEnd) -> None:
        self.number = number
        self.pid = pid
        self.pidfd = pidfd
        self.held: collections.deque[Held] = collections.deque()
        self.expected_ms = 0.0
        """What it should still take for all that it holds."""
        self.stuck = False
        self.is_ready = False
        self.stopping = False
        """It was asked to end and gets nothing more."""
        self.killed_for: tuple[OutcomeKind, str] | None = None
        """What its run ends in, when it was killed on purpose: kind and code."""
        self.violation: str | None = None
        """What it wrote that it may not; from then on nothing is read from it."""
        self.settled = asyncio.Event()
        """It is ready, or gone before it was."""
        self.gone = asyncio.Event()
        self._end = end
        self._head_since_s = 0.0

    @property
    def takes_work(self) -> bool:
        """Whether it may be given more."""
        return self.is_ready and not self.stopping and self.killed_for is None and self.violation is None

    @property
    def completions_descriptor(self) -> int:
        return self._end.completions_descriptor

    def go(self) -> None:
        """Give it the parent's word; it answers when it is ready."""
        self._end.put(RecordKind.GO)
        self._end.announce()

    def put(self, held: Held, now_s: float) -> bool:
        """Hand one over, to be announced; False when its memory has no room now."""
        attempt = held.attempt
        assert attempt.payload is not None, "an attempt is begun, and its payload read, before it is handed over"
        if not self._end.put(RecordKind.RUN, Run.of(attempt).encode(), attempt.payload):
            return False
        if not self.held:
            self._head_since_s = now_s
        self.held.append(held)
        self.expected_ms += held.expected_ms
        return True

    def announce(self) -> None:
        """Let it take what was put."""
        try:
            self._end.announce()
        except HandOffViolation as violation:
            self.condemn(str(violation))

    def collect(self, ended: list[Completion], expectations: Expectations, now_s: float) -> None:
        """Add what it has finished to `ended`, and learn from it."""
        held = self.held
        try:
            for busy_ms, outcome in self._end.collect():
                if not self.is_ready:
                    self.is_ready = True
                    self.settled.set()
                    continue
                one = held.popleft()
                self.expected_ms -= one.expected_ms
                expectations.learn(one.attempt.kind, busy_ms)
                ended.append(Completion(one.attempt, outcome))
        except HandOffViolation as violation:
            self.condemn(str(violation))
        if not held:
            self.expected_ms = 0.0
        self._head_since_s = now_s
        self.stuck = False

    def is_blocked(self, now_s: float) -> bool:
        """Whether something waits behind a head that takes longer than it should."""
        if len(self.held) < 2:
            return False
        return (now_s - self._head_since_s) * 1000 >= max(STUCK_MS, _PATIENCE * self.held[0].expected_ms)

    def time_limit_s(self) -> float | None:
        """When its head will have run for as long as it may, on the loop's clock; None when there is no limit,
        or when it is being killed already."""
        if not self.held or self.killed_for is not None:
            return None
        limit_ms = self.held[0].attempt.policy.execution_timeout_ms
        return None if limit_ms is None else self._head_since_s + limit_ms / 1000

    def take_back(self) -> list[Held]:
        """Take back all that it has not taken, in the order in which it was handed over.

        Nothing from one that was asked to end: the newest record is then the word to stop, not a run.
        """
        taken_back: list[Held] = []
        while self.held and not self.stopping and self._end.take_back():
            held = self.held.pop()
            self.expected_ms -= held.expected_ms
            taken_back.append(held)
        taken_back.reverse()
        return taken_back

    def stop(self) -> None:
        """Ask it to end when it has done what it holds."""
        if self.stopping or self.violation is not None:
            return
        self.stopping = True
        self._end.put(RecordKind.STOP)
        self.announce()

    def condemn(self, violation: str) -> None:
        """Kill it for what it wrote; what it holds is sorted out when it is dead."""
        if self.violation is None:
            self.violation = violation
            self.kill()

    def kill(self, killed_for: tuple[OutcomeKind, str] | None = None) -> None:
        """SIGKILL; its death is seen by its pidfd."""
        if killed_for is not None and self.killed_for is None:
            self.killed_for = killed_for
        processes.kill(self.pidfd)

    def autopsy(self, ending: Ending, *, now_ms: int, boot_ns: int, record_usage: bool) -> list[Completion]:
        """What became of the attempts that it had taken; those left in `held` have not begun. Only when it is dead.

        It runs one at a time, so at most one is expected; a handler that wrote into the counters may make it more.
        """
        taken, begun_at_ns = self._end.remains()
        victims = [self.held.popleft() for _ in range(min(taken, len(self.held)))]
        kind, code, detail = self._cause(ending)
        completions = []
        for victim in victims:
            ran_ns = None if begun_at_ns is None else max(0, boot_ns - begun_at_ns)
            outcome = Outcome(
                kind,
                code,
                detail,
                usage=Usage(wall_us=ran_ns // 1000) if record_usage and ran_ns is not None else None,
                begun_at_ms=None if ran_ns is None else now_ms - ran_ns // 1_000_000,
            )
            completions.append(Completion(victim.attempt, outcome))
            begun_at_ns = None
        return completions

    def _cause(self, ending: Ending) -> tuple[OutcomeKind, str, ErrorDetail]:
        if self.killed_for is not None:
            kind, code = self.killed_for
            return kind, code, ErrorDetail(ending.kind, f"its executor was stopped by force: {ending}")
        message = str(ending) if self.violation is None else f"{ending} for what it wrote: {self.violation}"
        return OutcomeKind.CRASHED, "executor_crashed", ErrorDetail(ending.kind, message)

    def close(self) -> None:
        """Throw its memory, its doorbells and its pidfd away, and let everybody know that it is gone."""
        self._end.close()
        os.close(self.pidfd)
        self.settled.set()
        self.gone.set()
