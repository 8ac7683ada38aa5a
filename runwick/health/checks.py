"""What was seen, judged: one check for each role. Pure: whoever calls says what time it is.

What is seen is refreshed every `PERIOD_S`. What has not been for three periods is stale, and stale is never healthy.
"""

from typing import Final, NamedTuple

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.health import HealthStatus, RoleCheck, RoleHealth, WorkerHealth

PERIOD_S: Final = 10.0
"""How often the store is asked, and a status file is written at least."""
BUDGET_S: Final = 1.0
"""A store that has not answered after this long has failed."""
STALE_S: Final = 3 * PERIOD_S
"""What is older is not believed; a store that has failed for so long is away."""
INCOMPATIBLE: Final = frozenset(
    {
        "store_not_installed",
        "store_profile_mismatch",
        "store_revision_mismatch",
        "store_identity_mismatch",
        "store_history_broken",
        "engine_version_unsupported",
        "server_version_unsupported",
        "topology_unsupported",
        "encoding_unsupported",
        "filesystem_unsupported",
    }
)
"""Codes that no waiting mends: this process and this store do not go together until somebody changes one of them."""

_OK: Final = "ok"


class Now(NamedTuple):
    """The present, by both clocks."""

    steady_s: float
    wall_ms: int

    @classmethod
    def by(cls, clock: Clock) -> "Now":
        return cls(clock.steady_s(), clock.now_ms())

    def age_s(self, at_s: float) -> float:
        """How long ago that moment of the steady clock was."""
        return self.steady_s - at_s

    def at_ms(self, at_s: float) -> int:
        """That moment of the steady clock, in milliseconds since 1970-01-01 UTC."""
        return self.wall_ms - round(self.age_s(at_s) * 1000)


class StoreSeen(msgspec.Struct, frozen=True):
    """How a store has answered, in seconds of the steady clock."""

    answered_s: float | None = None
    """When it last did as it should."""
    asked_s: float | None = None
    """Since when a call has been under way, if one is."""
    failing_since_s: float | None = None
    """Since when it has answered otherwise, or not at all."""
    fits: bool = True
    """Whether this process and this store go together; where not, no waiting mends it."""
    text: str = ""
    """What it said instead."""


class WorkerSeen(msgspec.Struct, frozen=True):
    """What a worker last said of itself, and when, by the steady clock."""

    health: WorkerHealth
    at_s: float


def check_store(role: str, seen: StoreSeen, now: Now) -> RoleCheck:
    """Whether the role of this name can work, which needs the store and nothing else."""
    observed_ms = None if seen.answered_s is None else now.at_ms(seen.answered_s)

    def told(status: HealthStatus, reason: str, text: str = "") -> RoleCheck:
        return RoleCheck(role, status, reason, observed_ms, text)

    if not seen.fits:
        return told(HealthStatus.UNHEALTHY, "incompatible", seen.text)
    failing_since_s, text = seen.failing_since_s, seen.text
    if failing_since_s is None and seen.asked_s is not None and now.age_s(seen.asked_s) > BUDGET_S:
        failing_since_s, text = seen.asked_s, f"no answer for {now.age_s(seen.asked_s):.1f} s"
    if failing_since_s is not None:
        is_brief = seen.answered_s is not None and now.age_s(failing_since_s) < STALE_S
        return told(HealthStatus.DEGRADED if is_brief else HealthStatus.UNHEALTHY, "store_unavailable", text)
    if seen.answered_s is None:
        return told(HealthStatus.UNHEALTHY, "starting", "the store has not answered yet")
    if (age_s := now.age_s(seen.answered_s)) > STALE_S:
        return told(HealthStatus.DEGRADED, "stale", f"the store last answered {age_s:.0f} s ago")
    return told(HealthStatus.HEALTHY, _OK)


def check_worker(seen: WorkerSeen | None, now: Now) -> RoleCheck:
    """Whether a worker takes work and finishes it. None: it has not said anything yet."""
    if seen is None:
        return RoleCheck("worker", HealthStatus.UNHEALTHY, "starting", None, "it has not begun")
    observed_ms, health = now.at_ms(seen.at_s), seen.health
    if (age_s := now.age_s(seen.at_s)) > STALE_S:
        return RoleCheck("worker", HealthStatus.DEGRADED, "stale", observed_ms, f"it was last seen {age_s:.0f} s ago")
    if health.ready and health.status is HealthStatus.HEALTHY:
        return RoleCheck("worker", HealthStatus.HEALTHY, _OK, observed_ms)
    wrong = sorted(wrong_roles(health), key=lambda role: list(HealthStatus).index(role.status), reverse=True)
    code = next((role.code for role in wrong if role.code), "not_running")
    text = "; ".join(f"{role.role}: {role.text or role.code}" for role in wrong)
    status = HealthStatus.DEGRADED if health.ready else HealthStatus.UNHEALTHY
    return RoleCheck("worker", status, "incompatible" if code in INCOMPATIBLE else code, observed_ms, text)


def check_live(seen: WorkerSeen | None, now: Now) -> RoleCheck:
    """Whether a worker's timer ticks. One that has not begun, or a process without one, is as alive as who asks."""
    if seen is not None and (age_s := now.age_s(seen.at_s)) > STALE_S:
        text = f"the worker's timer has not ticked for {age_s:.0f} s"
        return RoleCheck("live", HealthStatus.UNHEALTHY, "stalled", now.at_ms(seen.at_s), text)
    return RoleCheck("live", HealthStatus.HEALTHY, _OK, now.wall_ms)


def wrong_roles(health: WorkerHealth) -> list[RoleHealth]:
    """What keeps a worker from being healthy."""
    return [role for role in health.roles if role.status is not HealthStatus.HEALTHY]
