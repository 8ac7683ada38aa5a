"""What one worker's run came to, counted from its own settlements."""

import collections
import time

from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.states import JobState
from runwick.telemetry import events
from runwick.telemetry.bus import Bus


class Tally:
    """Counts since the worker's start; listens to the bus and keeps no attempts."""

    def __init__(self, bus: Bus) -> None:
        self.succeeded = 0
        self.failed = 0
        """Jobs that ended failed."""
        self.cancelled = 0
        """Jobs that ended cancelled, begun or not."""
        self.retried = 0
        """Attempts after which the job waits for its next try."""
        self.released = 0
        self.recovered = 0
        self.lost = 0
        """Leases lost."""
        self.outcomes: collections.Counter[OutcomeKind] = collections.Counter()
        self.handler_cpu_us = 0
        """CPU time of handlers and the children they waited for, where it was measured."""
        self.handler_wall_us = 0
        self.last_settled_s: float | None = None
        """When the last settlement committed, on `time.monotonic`."""
        bus.listen(events.Settled, self._settled)
        bus.listen(events.Released, self._released)
        bus.listen(events.EndedUnbegun, self._ended_unbegun)
        bus.listen(events.Recovered, self._recovered)
        bus.listen(events.LeaseLost, self._lost)
        bus.listen(events.HistoryBroken, self._history_broken)

    @property
    def done(self) -> int:
        """Attempts that ended and were settled."""
        return self.succeeded + self.failed + self.cancelled + self.retried

    def _settled(self, event: events.Settled) -> None:
        self.last_settled_s = time.monotonic()
        for settlement in event.settlements:
            state = settlement.state
            if state is JobState.SUCCEEDED:
                self.succeeded += 1
            elif state is JobState.RETRYING:
                self.retried += 1
            elif state is JobState.FAILED:
                self.failed += 1
            else:
                self.cancelled += 1
            outcome = settlement.outcome
            self.outcomes[outcome.kind] += 1
            usage = outcome.usage
            if usage is not None:
                self.handler_cpu_us += (usage.cpu_us or 0) + (usage.cpu_children_us or 0)
                self.handler_wall_us += usage.wall_us or 0

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
