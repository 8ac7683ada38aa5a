"""Whether a worker can do its work, and why not."""

import enum

import msgspec


class HealthStatus(enum.StrEnum):
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
