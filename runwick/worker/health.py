"""Whether a worker can do its work: put together from what its parts say, and watched for changes."""

from collections.abc import Callable, Iterable

from runwick.contracts.health import HealthStatus, RoleHealth, WorkerHealth, worst
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.timings import FAILED_ROUND_PAUSE_S, HEALTH_INTERVAL_S


def worker_health(roles: Iterable[RoleHealth], *, takes_work: bool, grade: str | None) -> WorkerHealth:
    """As bad as the worst of these.

    Args:
        roles: everything that the worker needs.
        takes_work: whether nothing but its roles keeps it from claiming.
        grade: how strongly its leases are fenced.
    """
    roles = tuple(roles)
    status = worst(role.status for role in roles)
    return WorkerHealth(status, takes_work and status is not HealthStatus.UNHEALTHY, roles, grade)


class HealthWatch:
    """Publishes what a worker looks like at each look, and its health whenever it has become another one; that it
    begins well is not told as a change."""

    name = "health"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(self, examine: Callable[[], WorkerHealth], *, bus: Bus) -> None:
        self.wake = Wake()
        self._examine = examine
        self._bus = bus
        self._known: object = None

    async def run_once(self) -> float | None:
        health = self._examine()
        self._bus.publish(events.HealthSeen(health))
        facts = health.facts
        is_news = facts != self._known and (self._known is not None or health.status is not HealthStatus.HEALTHY)
        self._known = facts
        if is_news:
            self._bus.publish(events.HealthChanged(health))
        return HEALTH_INTERVAL_S
