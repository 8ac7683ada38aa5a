"""The job contract: a typed record with a stable name.

This module is all that a package of shared job types needs; it loads msgspec and nothing else.
"""

import datetime
from collections.abc import Callable
from typing import Literal, TypeVar, dataclass_transform

import msgspec

from runwick.contracts.limits import PerResource, RollingWindow, RollingWindowPerResource, Selector, UniqueWithinWindow
from runwick.contracts.states import PriorityName


class Unset(msgspec.Struct, frozen=True):
    """The type of `UNSET`, which means that a setting was not given. Unset is not the default."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


# Tells type checkers what msgspec does at run time: a subclass is frozen like its base without saying so again.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The base of every job record.

    Subclass it with typed fields; instances are immutable, and a field's type is checked when the job is dispatched
    and again when it is decoded. Stored as JSON with camelCase members.
    """


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer (library, `job_defaults`, declaration, `configure_job`) says of a job. UNSET says nothing."""

    queue: str | Unset = UNSET
    priority: PriorityName | Unset = UNSET
    max_executions: int | Unset = UNSET
    execution_timeout: datetime.timedelta | Unset | None = UNSET
    """None turns an inherited time limit off."""
    retry_delay: tuple[datetime.timedelta, datetime.timedelta] | Unset = UNSET
    """(initial, maximum)."""
    max_unstarted: int | Unset = UNSET
    unstarted_delay: tuple[datetime.timedelta, datetime.timedelta] | Unset = UNSET
    """(initial, maximum)."""
    max_crashes: int | Unset = UNSET
    error_detail: Literal["full", "message"] | Unset = UNSET
    max_concurrent: int | Unset | None = UNSET
    """None turns an inherited limit off, here as in the three other settings that take it."""
    per_resource: tuple[PerResource, ...] | Unset = UNSET
    rolling_window: RollingWindow | Unset | None = UNSET
    rolling_window_per_resource: tuple[RollingWindowPerResource, ...] | Unset = UNSET
    unique_while_active: Selector | Unset | None = UNSET
    unique_within_window: UniqueWithinWindow | Unset | None = UNSET


class UseMiddleware(msgspec.Struct, frozen=True):
    """Names a middleware by the alias under which the application that runs the job registers it."""

    alias: str
    """1 to 128 characters of ``A-Z a-z 0-9 . _ -``."""
    order: int = 0
    """Among the aliases of one job, the lower one is further out; ties go by the alias."""


class JobDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """What `@job` attached to a record type. Nothing is checked here; the catalog checks all of it at once."""

    name: str
    version: int
    settings: JobSettings
    where: str
    """File and line of the declaration, for messages."""
    middleware: tuple[str | UseMiddleware, ...] = ()
    """What wraps each run, by alias. Layers do not replace each other's middleware, they add to it."""


T = TypeVar("T", bound=type[Job])

DECLARATION_ATTRIBUTE = "__runwick_job__"


def job(
    name: str,
    *,
    version: int = 1,
    queue: str | Unset = UNSET,
    priority: PriorityName | Unset = UNSET,
    max_executions: int | Unset = UNSET,
    execution_timeout: datetime.timedelta | Unset | None = UNSET,
    retry_delay: tuple[datetime.timedelta, datetime.timedelta] | Unset = UNSET,
    max_unstarted: int | Unset = UNSET,
    unstarted_delay: tuple[datetime.timedelta, datetime.timedelta] | Unset = UNSET,
    max_crashes: int | Unset = UNSET,
    error_detail: Literal["full", "message"] | Unset = UNSET,
    max_concurrent: int | Unset | None = UNSET,
    per_resource: tuple[PerResource, ...] | Unset = UNSET,
    rolling_window: RollingWindow | Unset | None = UNSET,
    rolling_window_per_resource: tuple[RollingWindowPerResource, ...] | Unset = UNSET,
    unique_while_active: Selector | Unset | None = UNSET,
    unique_within_window: UniqueWithinWindow | Unset | None = UNSET,
    middleware: tuple[str | UseMiddleware, ...] = (),
) -> Callable[[T], T]:
    """Name a `Job` record without an application, for packages that only share job types.

    The application adds the module with `Runwick.add_jobs`. The decorator is not inherited: a subclass needs a name
    of its own.

    Args:
        name: the stored name, 1 to 200 characters of ``A-Z a-z 0-9 . _ -``; the class name is never stored.
        version: the payload version, from 1.
        queue, priority: where the job is routed unless a dispatch says otherwise.
        max_executions: attempts that may call the handler, 1 to 100.
        execution_timeout: longest run, up to 30 days; None for no limit.
        retry_delay: (initial, maximum) of the exponential delay, 1 ms to 24 h.
        max_unstarted, unstarted_delay: the guard for claims that never begin.
        max_crashes: executor deaths before the job fails as ``poison_job``.
        error_detail: ``"message"`` keeps an error's type and message alone, at most 1,000 characters and never a
            traceback.
        max_concurrent: most jobs of this type that run at once, in all workers together; None for no limit.
        per_resource: most jobs that run at once with the same key. A job takes up to 8 such limits, its queue's and its
            type's included.
        rolling_window: how many runs of this type may begin within any stretch of that length; None for no limit.
        rolling_window_per_resource: the same for the runs with one key; up to 8 windows in all.
        unique_while_active: gives a job's active key. While a job with it waits or runs, another dispatch answers that
            job instead; no dispatch can leave the key out.
        unique_within_window: gives a job's window key, and for how long it holds; it cannot be left out either.
        middleware: aliases of what wraps each run; whoever runs the job registers them.
    """
    settings = JobSettings(
        queue=queue,
        priority=priority,
        max_executions=max_executions,
        execution_timeout=execution_timeout,
        retry_delay=retry_delay,
        max_unstarted=max_unstarted,
        unstarted_delay=unstarted_delay,
        max_crashes=max_crashes,
        error_detail=error_detail,
        max_concurrent=max_concurrent,
        per_resource=per_resource,
        rolling_window=rolling_window,
        rolling_window_per_resource=rolling_window_per_resource,
        unique_while_active=unique_while_active,
        unique_within_window=unique_within_window,
    )
    declaration = JobDeclaration(name=name, version=version, settings=settings, where=_caller(), middleware=middleware)

    def attach(record: T) -> T:
        setattr(record, DECLARATION_ATTRIBUTE, declaration)
        return record

    return attach


def declaration_of(record: type[Job]) -> JobDeclaration | None:
    """What `@job` attached to this very class; a base class's declaration does not count."""
    found = record.__dict__.get(DECLARATION_ATTRIBUTE)
    return found if isinstance(found, JobDeclaration) else None


def _caller() -> str:
    import sys

    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
