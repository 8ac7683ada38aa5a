"""Whether a worker, or a process in each of its roles, can do its work, and why not."""

import enum
from collections.abc import Iterable

import msgspec


class HealthStatus(enum.StrEnum):
    """From good to bad."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """It works, but not as it should."""
    UNHEALTHY = "unhealthy"
    """It does not work."""


class RoleHealth(msgspec.Struct, frozen=True):
    """One thing that a worker needs: the store, or the executors of a pool."""

    role: str
    """``store``, ``admission``, ``pool main``, ``leases``…"""
    status: HealthStatus
    code: str | None = None
    """What is wrong: ``no_executors``, ``executors_missing``, ``store_unavailable``, ``store_history_broken``,
    ``draining``; None while nothing is."""
    text: str = ""
    """The same for people, with figures."""


class WorkerHealth(msgspec.Struct, frozen=True):
    """A worker's health: as bad as its worst role's."""

    status: HealthStatus
    ready: bool
    """Whether it takes work now: every pool has an executor, and nothing drains it."""
    roles: tuple[RoleHealth, ...]
    grade: str | None = None
    """How strongly leases are fenced here (``full``, ``watched``); None where nothing can be stopped."""

    @property
    def facts(self) -> object:
        """What makes it another health than before: all but the texts, whose figures change with each look."""
        return self.ready, [(role.role, role.status, role.code) for role in self.roles]


class RoleCheck(msgspec.Struct, frozen=True, rename="camel"):
    """One role of a process: whether it can do its part, as it was last seen."""

    role: str
    """``live``, ``producer``, ``worker``, ``management``."""
    status: HealthStatus
    reason: str
    """``ok``, ``starting``, ``stale``, ``stalled``, ``store_unavailable``, ``incompatible``, or a worker's code for
    what is wrong, such as ``draining`` and ``no_executors``."""
    observed_at_ms: int | None
    """When it was last seen as told, in milliseconds since 1970-01-01 UTC; None when it has not been seen yet."""
    text: str = ""
    """The same for people. For operators alone: it may name hosts and files."""


class ProcessHealth(msgspec.Struct, frozen=True):
    """A process by its roles."""

    live: RoleCheck
    """Unhealthy when the process itself stands still and should be started anew; that a store is away is no reason."""
    ready: tuple[RoleCheck, ...]
    """One for each role that it has."""

    @property
    def status(self) -> HealthStatus:
        """As bad as the worst role's."""
        return worst(check.status for check in self.ready)


def worst(states: Iterable[HealthStatus]) -> HealthStatus:
    """The worst of these; healthy when there are none."""
    return max(states, key=list(HealthStatus).index, default=HealthStatus.HEALTHY)
