"""What one worker's run came to, counted from its own settlements."""

import collections
import time
from collections.abc import Collection, Iterable

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.states import JobState
from runwick.telemetry import events
from runwick.telemetry.bus import Bus


class Tally:
    """Counts since the worker's start; listens to the bus."""

    def __init__(self, bus: Bus) -> None:
        self.succeeded = 0
        self.failed = 0
        """Jobs that ended failed."""
        self.cancelled = 0
        """Jobs that ended cancelled, begun or not."""
        self.retried = 0
        """Attempts after which the job waits for its next try."""
        self.released = 0
        self.parked = 0
        """Times that a claim moved a job into a limit's line; alike the next."""
        self.deferred = 0
        """Times that a claim made a job due later for a rate window."""
        self.recovered = 0
        self.lost = 0
        """Leases lost."""
        self.outcomes: collections.Counter[OutcomeKind] = collections.Counter()
        self.handler_cpu_us = 0
        """CPU time of handlers and the children they waited for, where it was measured. Of runs that have not been
        settled it is what they had used when they were last looked at."""
        self._counted_us: dict[bytes, int] = {}
        """By attempt: what is counted of it before its settlement."""
        self.handler_wall_us = 0
        self.last_settled_s: float | None = None
        """When the last settlement committed, on `time.monotonic`."""
        bus.listen(events.Settled, self._settled)
        bus.listen(events.Released, self._released)
        bus.listen(events.MovedAside, self._moved_aside)
        bus.listen(events.EndedUnbegun, self._ended_unbegun)
        bus.listen(events.Recovered, self._recovered)
        bus.listen(events.LeaseLost, self._lost)
        bus.listen(events.HistoryBroken, self._history_broken)

    @property
    def done(self) -> int:
        """Attempts that ended and were settled."""
        return self.succeeded + self.failed + self.cancelled + self.retried

    def look(self, doing: Iterable[ExecutorActivity], held: Collection[bytes]) -> int:
        """Count the CPU time of what still runs; its settlement adds only what it used since. Answers how many runs
        those are.

        Args:
            doing: what every executor does now.
            held: attempts that may still be settled, by id.
        """
        running = [each for each in doing if each.attempt_id is not None]
        alive = {each.attempt_id for each in running}.union(held)
        self._counted_us = {attempt: cpu_us for attempt, cpu_us in self._counted_us.items() if attempt in alive}
        for each in running:
            assert each.attempt_id is not None
            counted_us = self._counted_us.get(each.attempt_id, 0)
            self._counted_us[each.attempt_id] = max(counted_us, each.cpu_us or 0)
            self.handler_cpu_us += max(0, (each.cpu_us or 0) - counted_us)
        return len(running)

    def _settled(self, event: events.Settled) -> None:
        self.last_settled_s = time.monotonic()
        settlements, counted_us = event.settlements, self._counted_us
        states = collections.Counter([settlement.state for settlement in settlements])
        self.succeeded += states[JobState.SUCCEEDED]
        self.retried += states[JobState.RETRYING]
        self.failed += states[JobState.FAILED]
        self.cancelled += states[JobState.CANCELLED]
        self.outcomes.update([settlement.outcome.kind for settlement in settlements])
        cpu_us = wall_us = 0
        for settlement in settlements:
            before_us = counted_us.pop(settlement.attempt.attempt_id, 0) if counted_us else 0
            if (usage := settlement.outcome.usage) is not None:
                cpu_us += max(0, (usage.cpu_us or 0) + (usage.cpu_children_us or 0) - before_us)
                wall_us += usage.wall_us or 0
        self.handler_cpu_us += cpu_us
        self.handler_wall_us += wall_us

    def _moved_aside(self, event: events.MovedAside) -> None:
        self.parked += event.parked
        self.deferred += event.deferred

    def _released(self, event: events.Released) -> None:
        self.released += len(event.attempts)

    def _ended_unbegun(self, event: events.EndedUnbegun) -> None:
        if event.code == "cancel_requested":
            self.cancelled += len(event.attempts)
        else:
            self.failed += len(event.attempts)

    def _recovered(self, event: events.Recovered) -> None:
        self.recovered += event.count

    def _lost(self, _event: events.LeaseLost) -> None:
        self.lost += 1

    def _history_broken(self, event: events.HistoryBroken) -> None:
        self.lost += event.leases
