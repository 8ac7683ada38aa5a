"""One executor as the parent sees it: a process, its hand-off, and the attempts that it holds.

    booting ─ready─▶ idle ⇄ busy (the head runs, the others wait behind it) ─▶ leaving ─▶ gone
                              ├─ stuck: the head takes too long, what waited behind it was taken back
                              └─ stopping: the head was asked to end, nothing waits behind it

It knows nothing of the other executors; who gets what, and when which signal is due, is decided elsewhere.
"""

import asyncio
import collections
import math
import os
import time
from typing import Final

from runwick.contracts.attempts import Kind
from runwick.contracts.backends import Completion
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import BlackBox
from runwick_supervisor import processes
from runwick_supervisor.control import Progress
from runwick_supervisor.deaths import Leavings, Seen
from runwick_supervisor.expectations import Expectations
from runwick_supervisor.fence import FenceMemory, now_ns
from runwick_supervisor.handoff import HandOffViolation, ParentEnd, RecordKind, encode_run
from runwick_supervisor.held import Held
from runwick_supervisor.sampling import Probe
from runwick_supervisor.signals import DUMP, INTERRUPT
from runwick_supervisor.stopping import CRASHED, WRITTEN_POLL_S, Stopping, Verdict

STUCK_MS: Final = 30.0
"""A head is given at least this long before what waits behind it is taken back."""
_PATIENCE: Final = 2.0
"""And this many times what it was expected to take."""
_NOT_BEGUN_S: Final = 0.01
_RUN: Final = RecordKind.RUN
TAKEN_WITHIN_S: Final = 5.0
"""An executor takes what it is given within microseconds; on a machine that is overloaded, within seconds."""


class Executor:
    """A forked process and what it holds. It begins with its birth; `close` is its end."""

    def __init__(
        self, number: int, pid: int, pidfd: int, end: ParentEnd, fence: FenceMemory, kinds: frozenset[Kind]
    ) -> None:
        self.number = number
        self.pid = pid
        self.pidfd = pidfd
        self.kinds = kinds
        """What the application declares that it was made of: executors of another one may know others."""
        self.held: collections.deque[Held] = collections.deque()
        self.expected_ms = 0.0
        """What it should still take for all that it holds."""
        self.born_s = time.monotonic()
        self.probe = Probe(pid)
        self._fence = fence
        self.fenced_s = 0.0
        """Until when its slot of the fence lets it live, on the loop's clock; 0 while nothing is said there."""
        self.attempts = 0
        """How many have ended."""
        self.stuck = False
        self.is_ready = False
        self.leaving = False
        """It gets nothing more: another one takes its place, or none."""
        self.retire_for: str | None = None
        """Why another one shall take its place when it is free."""
        self.is_spent = False
        """`JobCancelled` was raised in it, and whatever that came upon may be half done, such as a lock that nobody
        gives back: no other run may meet that."""
        self.stopping: Stopping | None = None
        """Its head, the only one that it holds, shall end."""
        self.killed_for: Verdict | None = None
        """What that means for its head, when it was killed on purpose."""
        self.is_unwanted = False
        """It was killed because nobody waits for it any more, or never was ready."""
        self.violation: str | None = None
        """What it wrote that it may not; from then on nothing is read from it."""
        self.settled = asyncio.Event()
        """It is ready, or gone before it was."""
        self.over = asyncio.Event()
        """Its place is another one's, or empty."""
        self.gone = asyncio.Event()
        self._end = end
        self._head_since_s = 0.0
        """Since when its head runs, as far as that is known."""
        self._heard_s = 0.0
        """When it was given its head, or last said anything: its patience with the head counts from there."""
        self._seen = Seen()
        self.told_to_end = False
        self._stack_bytes = 0
        self._stack_since_s = 0.0

    @property
    def may_leave(self) -> bool:
        """Whether another one may take its place when it holds nothing."""
        return (
            self.is_ready
            and not self.leaving
            and self.stopping is None
            and self.killed_for is None
            and self.violation is None
        )

    @property
    def takes_work(self) -> bool:
        """Whether it may be given more."""
        return self.may_leave and not self.is_spent

    @property
    def takes_ahead(self) -> bool:
        """Whether that may wait behind its head."""
        return self.takes_work and not self.stuck and self.retire_for is None

    @property
    def completions_descriptor(self) -> int:
        return self._end.completions_descriptor

    # What it is given and what it gives back -----------------------------------------------------------------------

    def go(self) -> None:
        """Give it the parent's word; it answers when it is ready."""
        self._end.put(RecordKind.GO)
        self._end.announce()

    def put(self, held: Held, now_s: float) -> bool:
        """Hand one over, to be announced; False when its memory has no room now."""
        attempt = held.attempt
        assert attempt.payload is not None, "an attempt is begun, and its payload read, before it is handed over"
        if not self._end.put(_RUN, encode_run(attempt), attempt.payload):
            return False
        if not self.held:
            self._head_since_s = self._heard_s = now_s
        self.held.append(held)
        self.expected_ms += held.expected_ms
        if not self.fenced_s or held.fenced_s < self.fenced_s:
            self._fence_at(held.fenced_s)
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
        # Of the head, and no longer readable once it is answered.
        was_interrupted = self.stopping is not None and self.progress().interrupted
        before = len(held)
        kind: Kind | None = None
        took_ms: list[float] = []
        try:
            for busy_ms, outcome in self._end.collect():
                if not self.is_ready:
                    self._is_up()
                    continue
                one = held.popleft()
                attempt = one.attempt
                self.expected_ms -= one.expected_ms
                if attempt.kind is not kind:
                    if kind is not None:
                        expectations.learn(kind, *took_ms)
                    kind, took_ms = attempt.kind, []
                took_ms.append(busy_ms)
                ended.append(Completion(attempt, outcome))
        except HandOffViolation as violation:
            self.condemn(str(violation))
        if kind is not None:
            expectations.learn(kind, *took_ms)
        self._heard_s = now_s
        if held:
            self._head_since_s = now_s - self._head_s()
        else:
            self.expected_ms = 0.0
        self.stuck = False
        if len(held) < before:
            self.attempts += before - len(held)
            self._end_of_stopping(was_interrupted)

    def _is_up(self) -> None:
        """It has answered the parent's word."""
        self.is_ready = True
        self.probe.settle()
        self.settled.set()

    def _head_s(self) -> float:
        """For how long its head has run, as it says itself; 0 when it has not begun."""
        began_ns = self._end.begun_at_ns() if self.violation is None else None
        return 0.0 if began_ns is None else max(0.0, (now_ns() - began_ns) / 1e9)

    def _end_of_stopping(self, was_interrupted: bool) -> None:
        """What was asked to end has ended by itself."""
        if self.stopping is not None and self.violation is None:
            self.stopping = None
            self._end.clear_stack()
            if was_interrupted:
                self.is_spent = True
                self.retire("JobCancelled was raised in it")

    def take_back(self) -> list[Held]:
        """Take back all that it has not taken, in the order in which it was handed over.

        Nothing from one that was told to end: the newest record is then the word to end, not a run.
        """
        taken_back: list[Held] = []
        while self.held and not self.told_to_end and self._end.take_back():
            held = self.held.pop()
            self.expected_ms -= held.expected_ms
            taken_back.append(held)
        taken_back.reverse()
        return taken_back

    def stop(self) -> None:
        """Tell it to end when it has done what it holds."""
        self.leaving = True
        if not self.told_to_end and self.violation is None:
            self.told_to_end = True
            self._end.put(RecordKind.STOP)
            self.announce()

    def retire(self, reason: str) -> None:
        """Another one shall take its place when it is free; the first reason counts."""
        self.retire_for = self.retire_for or reason

    # What its head is at -------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """What it says of its head; nothing before it has begun it."""
        return self._end.progress() if self.held and self.violation is None else Progress()

    def leaves_work_lying(self, now_s: float) -> bool:
        """Whether it has not begun what it was given long ago: it is stopped, or a thread that an earlier handler left
        keeps the interpreter."""
        is_late = bool(self.held) and now_s - self._heard_s >= TAKEN_WITHIN_S
        return is_late and self.is_ready and self.violation is None and self.progress().begun_at_ns is None

    def left_ms(self, now_s: float) -> float:
        """What it should still take for all that it holds, if everything took and takes what is expected: also what has
        ended unheard."""
        return max(0.0, self.expected_ms - (now_s - self._head_since_s) * 1000) if self.held else 0.0

    def load_ms(self, now_s: float) -> float:
        """The same for whoever would give it more: a head that takes longer than expected, or that is not known, counts
        as if it had just begun, for then nobody knows how much of it is left."""
        if not self.held:
            return 0.0
        head, since_ms = self.held[0], (now_s - self._head_since_s) * 1000
        return self.expected_ms - since_ms if head.known and since_ms < head.expected_ms else self.expected_ms

    def head_left_ms(self, now_s: float) -> float:
        """What its head should still take; 0 when that is over."""
        return max(0.0, self.held[0].expected_ms - (now_s - self._head_since_s) * 1000) if self.held else 0.0

    def is_blocked(self, now_s: float) -> bool:
        """Whether something waits behind a head that takes longer than it should."""
        if len(self.held) < 2:
            return False
        return (now_s - self._head_since_s) * 1000 >= max(STUCK_MS, _PATIENCE * self.held[0].expected_ms)

    def limit_s(self, now_s: float) -> float:
        """When its head will have run for as long as it may, on the loop's clock; if that cannot be known yet, when to
        ask again. Never where there is no limit, or where it is known to be over."""
        if not self.held or (self.stopping is not None and CancellationCause.TIMEOUT in self.stopping.causes):
            return math.inf
        limit_ms = self.held[0].attempt.policy.execution_timeout_ms
        if limit_ms is None:
            return math.inf
        earliest_s = self._head_since_s + limit_ms / 1000
        if earliest_s > now_s:
            return earliest_s
        begun_at_ns = self.progress().begun_at_ns
        if begun_at_ns is None:
            return now_s + _NOT_BEGUN_S
        return now_s + limit_ms / 1000 - (now_ns() - begun_at_ns) / 1e9

    def closing_since_s(self, now_s: float) -> float | None:
        """Since when its head closes its providers, on the loop's clock; None when it does not."""
        since_ns = self.progress().phase_since_ns
        return None if since_ns is None else now_s - (now_ns() - since_ns) / 1e9

    # Until when it may live ----------------------------------------------------------------------------------------

    def refence(self) -> None:
        """Let it live as long as what it holds; as long as it likes when that is nothing."""
        fenced_s = min([held.fenced_s for held in self.held], default=0.0)
        if fenced_s != self.fenced_s:
            self._fence_at(fenced_s)

    def is_fenced_off(self) -> bool:
        """Whether it has lived too long: then others than the parent kill it."""
        return self._fence.has_fallen(self.number)

    def unfence(self) -> None:
        """Let its slot be the next one's."""
        if self.fenced_s:
            self._fence_at(0.0)

    def _fence_at(self, fenced_s: float) -> None:
        self.fenced_s = fenced_s
        left_ns = int((fenced_s - time.monotonic()) * 1e9)
        self._fence.set(self.number, max(1, now_ns() + left_ns) if fenced_s else 0)

    # How it is stopped ---------------------------------------------------------------------------------------------

    def ask(self, cause: CancellationCause, now_s: float, within_s: float, cleanup_budget_s: float) -> None:
        """Ask its head, all that it holds, to end within that time."""
        if self.killed_for is not None or self.violation is not None:
            return
        self.stopping = self.stopping or Stopping(now_s, cleanup_budget_s)
        if self.stopping.ask(cause, now_s, within_s):
            self.interrupt(self.stopping)

    def interrupt(self, stopping: Stopping) -> None:
        """Tell the run why it shall end, and have it look."""
        try:
            self._end.cancel(stopping.causes.value, insist=stopping.insists)
        except HandOffViolation as violation:
            self.condemn(str(violation))
        self._signal(INTERRUPT)

    def condemn(self, violation: str) -> None:
        """Nothing is read from it any more, and it shall be killed now for what it wrote."""
        if self.violation is None:
            self.violation = violation
            now_s = time.monotonic()
            self.stopping = self.stopping or Stopping(now_s, 0.0)
            self.stopping.condemn(CRASHED._replace(text=f"it wrote what it may not ({violation})"), now_s)

    def dump(self) -> bool:
        """Have it write its stack; answers whether it will."""
        self._end.clear_stack()
        self._stack_bytes, self._stack_since_s = 0, 0.0
        return self._signal(DUMP)

    def _signal(self, number: int) -> bool:
        """Send one of ours; answers whether it was sent. Where a handler has undone what it means here, or executed
        another program, it would kill: then it is kept back."""
        if not self.probe.catches(number):
            return False
        processes.send(self.pidfd, number)
        return True

    def stack_is_written(self, now_s: float) -> bool:
        """Whether it has written something, and nothing more for a moment."""
        size_bytes = self._end.stack_bytes
        if size_bytes != self._stack_bytes:
            self._stack_bytes, self._stack_since_s = size_bytes, now_s
        return size_bytes > 0 and now_s - self._stack_since_s >= WRITTEN_POLL_S

    def take_stack(self) -> str:
        """What it wrote. It is kept only for one that shall end, so that no later death is explained by it."""
        stack = self._end.stack()
        if self.stopping is None:
            self._end.clear_stack()
        return stack

    def kill(self, verdict: Verdict | None = None) -> None:
        """SIGKILL; its death is seen by its pidfd. Without a verdict it is one that is not wanted any more."""
        self.is_unwanted = self.is_unwanted or verdict is None
        if verdict is not None and self.killed_for is None:
            self.killed_for = verdict
            sample = self.probe.sample()
            self._seen = Seen(self.probe.peak_bytes(), None if sample is None else sample.rss_bytes)
        processes.kill(self.pidfd)

    # When it is dead -----------------------------------------------------------------------------------------------

    def leavings(self) -> Leavings:
        """The attempts that it had taken, and what it says of them; those left in `held` have not begun.

        It runs one at a time, so at most one is expected; a handler that wrote into the counters may make it more.
        """
        taken, progress = self._end.remains()
        box = BlackBox(self._end.log_lines(), self._end.stack())
        victims = [self.held.popleft().attempt for _ in range(min(taken, len(self.held)))]
        return Leavings(victims, progress, box, self._seen)

    def close(self) -> None:
        """Throw its memory, its doorbells and its descriptors away, and let everybody know that it is gone."""
        self._end.close()
        self.probe.close()
        os.close(self.pidfd)
        self.settled.set()
        self.over.set()
        self.gone.set()
