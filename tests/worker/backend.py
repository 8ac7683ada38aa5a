"""A backend that runs nothing by itself: the test says what ends, and how."""

import asyncio
from collections.abc import Mapping, Sequence

from runwick.contracts.activity import ExecutorActivity, Mark
from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import HealthStatus, RoleHealth
from runwick.contracts.outcomes import Outcome, OutcomeKind


class HandBackend:
    """Holds what it was handed until the test ends it. It heeds the end of its worker, unless it is deaf."""

    name = "by hand"

    def __init__(self, free: int = 2, ahead: int = 0) -> None:
        self.slots = free
        self.ahead = ahead
        self.expected_ms: float | None = None
        self.held: list[Attempt] = []
        self.begun: set[int] = set()
        self.deaf = False
        """Whether what has begun goes on until it is killed: asked to end within no time at all."""
        self.asked: list[tuple[Attempt, CancellationCause, float]] = []
        self.deadlines_s: dict[bytes, float] = {}
        self.activity: list[ExecutorActivity] = []
        self.begun_marks: list[Mark] = []
        self.looks: list[bytes] = []
        self.state = RoleHealth("pool by hand", HealthStatus.HEALTHY)
        self.started = False
        self.ends_when_hurried = False
        """Whether it ends only when all is asked to stop within no time."""
        self.hurried = asyncio.Event()
        """Whether that was asked."""
        self.refusal: Exception | None = None
        """Why it cannot be brought up."""
        self.sink: Sink | None = None

    @property
    def stopped_runs(self) -> list[Attempt]:
        """What was asked to stop because its lease is lost."""
        return [attempt for attempt, cause, _ in self.asked if cause is CancellationCause.LEASE_LOST]

    async def start(self, sink: Sink) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sink, self.started = sink, True

    def room(self) -> Room:
        free = max(0, self.slots - len(self.held))
        ahead = max(0, self.slots + self.ahead - len(self.held) - free)
        return Room(free=free, ahead=ahead, payload_bytes=1 << 24, worthwhile=free > 0 or ahead > 0)

    def hand_over(self, attempts: Sequence[Attempt], deadline_s: float) -> None:
        self.held += attempts
        self.deadlines_s.update({attempt.attempt_id: deadline_s for attempt in attempts})

    def extend(self, deadlines_s: Mapping[bytes, float]) -> None:
        self.deadlines_s.update(deadlines_s)

    def take_back(self) -> Sequence[Attempt]:
        return self._take_back(self.held)

    def next_completion_ms(self) -> float | None:
        return self.expected_ms if self.held else None

    def running(self) -> int:
        return len(self.held)

    def ask(self, attempts: Sequence[Attempt] | None, cause: CancellationCause, within_s: float) -> None:
        meant = [attempt for attempt in self.held if attempts is None or attempt in attempts]
        self.asked += [(attempt, cause, within_s) for attempt in meant]
        if cause is CancellationCause.USER_REQUESTED and (unbegun := self._take_back(meant)):
            assert self.sink is not None
            self.sink.unstarted(unbegun)
        if attempts is None and within_s <= 0:
            self.hurried.set()
        if cause is CancellationCause.SHUTDOWN and (within_s <= 0 or not self.deaf):
            for attempt in meant:
                self.end(attempt, Outcome(OutcomeKind.INTERRUPTED, "worker_stopping"))

    def doing(self) -> Sequence[ExecutorActivity]:
        return list(self.activity)

    def marks(self) -> Sequence[Mark]:
        return list(self.begun_marks)

    def look(self, attempt_ids: Sequence[bytes]) -> None:
        self.looks += attempt_ids

    def health(self) -> RoleHealth:
        return self.state

    async def stop(self) -> None:
        self.started = False
        if self.ends_when_hurried:
            await self.hurried.wait()

    def end(self, attempt: Attempt, outcome: Outcome | None = None) -> None:
        """End one run, successfully unless told otherwise."""
        assert self.sink is not None
        self.held.remove(attempt)
        self.sink.completed([Completion(attempt, outcome or Outcome(OutcomeKind.SUCCEEDED))])
        self.sink.room_changed()

    def mark(self, attempt: Attempt, begun_at_ms: int) -> None:
        """Let its handler begin."""
        self.begun.add(attempt.job)
        self.begun_marks.append(Mark(attempt.job, attempt.claim_token, begun_at_ms))

    def _take_back(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        taken = [attempt for attempt in attempts if attempt.job not in self.begun]
        self.held = [attempt for attempt in self.held if attempt not in taken]
        return taken
