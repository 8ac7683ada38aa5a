"""A backend that runs nothing by itself: the test says what ends, and how."""

from collections.abc import Sequence

from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.outcomes import Outcome, OutcomeKind


class HandBackend:
    """Holds what it was handed until the test ends it."""

    name = "by hand"

    def __init__(self, free: int = 2, ahead: int = 0) -> None:
        self.slots = free
        self.ahead = ahead
        self.expected_ms: float | None = None
        self.held: list[Attempt] = []
        self.begun: set[int] = set()
        self.stopped_runs: list[Attempt] = []
        self.started = False
        self.sink: Sink | None = None

    async def start(self, sink: Sink) -> None:
        self.sink, self.started = sink, True

    def room(self) -> Room:
        free = max(0, self.slots - len(self.held))
        ahead = max(0, self.slots + self.ahead - len(self.held) - free)
        return Room(free=free, ahead=ahead, payload_bytes=1 << 24, worthwhile=free > 0 or ahead > 0)

    def hand_over(self, attempts: Sequence[Attempt]) -> None:
        self.held += attempts

    def take_back(self) -> Sequence[Attempt]:
        taken = [attempt for attempt in self.held if attempt.job not in self.begun]
        self.held = [attempt for attempt in self.held if attempt.job in self.begun]
        return taken

    def next_completion_ms(self) -> float | None:
        return self.expected_ms if self.held else None

    def running(self) -> int:
        return len(self.held)

    def stop_runs(self, attempts: Sequence[Attempt]) -> None:
        self.stopped_runs += attempts

    def stop_by_force(self) -> None:
        for attempt in list(self.held):
            self.end(attempt, Outcome(OutcomeKind.INTERRUPTED, "worker_stopping"))

    async def stop(self) -> None:
        self.started = False

    def end(self, attempt: Attempt, outcome: Outcome | None = None) -> None:
        """End one run, successfully unless told otherwise."""
        assert self.sink is not None
        self.held.remove(attempt)
        self.sink.completed([Completion(attempt, outcome or Outcome(OutcomeKind.SUCCEEDED))])
        self.sink.room_changed()
