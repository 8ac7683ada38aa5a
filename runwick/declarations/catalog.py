"""The catalog: an application's declarations, checked and frozen. Producers and workers read the same one."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from runwick.contracts.attempts import Kind
from runwick.contracts.errors import Problem
from runwick.contracts.jobs import Job
from runwick.contracts.limits import DeclaredLimits
from runwick.declarations.handlers import HandlerBinding
from runwick.declarations.jobs import JobEntry
from runwick.declarations.limits import declared_limits
from runwick.declarations.middleware import MiddlewareBinding
from runwick.declarations.pools import Pool
from runwick.declarations.providers import Provider
from runwick.declarations.upgrades import Route

__all__ = ["Catalog", "JobEntry"]


@dataclasses.dataclass(frozen=True, slots=True)
class Catalog:
    """What an application consists of. A producer needs no handlers; a worker claims the kinds that are `decodable`."""

    application: str
    jobs: Mapping[Kind, JobEntry]
    by_record: Mapping[type[Job], JobEntry]
    handlers: Mapping[Kind, HandlerBinding]
    decodable: Mapping[Kind, Route | None]
    """Every kind that can be run here: those with a handler, and their older versions that upgrades lead from."""
    middleware: Mapping[Kind, tuple[MiddlewareBinding, ...]]
    """What wraps the runs of each kind with a handler, outermost first."""
    unknown_aliases: tuple[Problem, ...]
    """Middleware that a job with a handler names and nobody registered. A worker must not start with one; a producer
    need not know it."""
    providers: Mapping[Any, Provider]
    """By the type they provide."""
    queues: frozenset[str]
    """Every queue that a job uses or that was declared."""
    queue_limits: Mapping[str, int]
    """Most jobs of a queue that run at once, in all workers together, where that is limited."""
    pools: tuple[Pool, ...]
    """As declared, or the one default pool."""

    @property
    def limits(self) -> DeclaredLimits:
        """Those of its queues and job types. A worker makes the scopes known before it works."""
        return declared_limits(self.queue_limits, [(entry.kind.name, entry.limits) for entry in self.jobs.values()])
