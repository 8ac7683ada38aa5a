"""The catalog: an application's declarations, checked and frozen. Producers and workers read the same one."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from runwick.contracts.attempts import Kind
from runwick.contracts.jobs import Job
from runwick.declarations.handlers import HandlerBinding
from runwick.declarations.jobs import JobEntry
from runwick.declarations.pools import Pool
from runwick.declarations.providers import Provider

__all__ = ["Catalog", "JobEntry"]


@dataclasses.dataclass(frozen=True, slots=True)
class Catalog:
    """What an application consists of. A producer needs no handlers; a worker claims the kinds it has one for."""

    application: str
    jobs: Mapping[Kind, JobEntry]
    by_record: Mapping[type[Job], JobEntry]
    handlers: Mapping[Kind, HandlerBinding]
    providers: Mapping[Any, Provider]
    """By the type they provide."""
    queues: frozenset[str]
    """Every queue that a job uses or that was declared."""
    pools: tuple[Pool, ...]
    """As declared, or the one default pool."""
