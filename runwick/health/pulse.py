"""What a worker says of itself once a second, kept for whoever asks from another thread."""

from runwick.contracts.ambient import Clock
from runwick.health.checks import WorkerSeen
from runwick.telemetry import events
from runwick.telemetry.bus import Bus


class Pulse:
    """The last word of one worker. Read from any thread."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self.seen: WorkerSeen | None = None
        """None until the worker has begun."""
        self._clock = clock
        bus.listen(events.HealthSeen, self._hear)

    def _hear(self, event: events.HealthSeen) -> None:
        self.seen = WorkerSeen(event.health, self._clock.steady_s())
