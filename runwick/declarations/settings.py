"""A job's settings: layers, of which the later one wins, and what they become when nothing is wrong with them.

::

    library  <  job_defaults  <  declaration (@job)  <  configure_job

A setting that a layer does not give says nothing in it; two places of one layer that give it must agree.
"""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypedDict

import msgspec

from runwick.contracts.attempts import Lane
from runwick.contracts.errors import Problem
from runwick.contracts.jobs import UNSET, JobSettings, Unset
from runwick.contracts.limits import PerResource, RollingWindow, RollingWindowPerResource, Selector, UniqueWithinWindow
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority, PriorityName

DEFAULT_QUEUE: Final = "default"

MILLISECOND: Final = datetime.timedelta(milliseconds=1)

SETTING_NAMES: Final = tuple(field.name for field in msgspec.structs.fields(JobSettings))


class SettingArguments(TypedDict, total=False):
    """The keyword arguments by which a job is configured; `JobSettings` says what they mean."""

    queue: str
    priority: PriorityName
    max_executions: int
    execution_timeout: datetime.timedelta | None
    retry_delay: tuple[datetime.timedelta, datetime.timedelta]
    max_unstarted: int
    unstarted_delay: tuple[datetime.timedelta, datetime.timedelta]
    max_crashes: int
    error_detail: Literal["full", "message"]
    max_concurrent: int | None
    per_resource: tuple[PerResource, ...]
    rolling_window: RollingWindow | None
    rolling_window_per_resource: tuple[RollingWindowPerResource, ...]
    unique_while_active: Selector | None
    unique_within_window: UniqueWithinWindow | None


class Placed(NamedTuple):
    """Settings and where they were given."""

    settings: JobSettings
    where: str


def merged(layers: Iterable[JobSettings]) -> JobSettings:
    """What holds when the later layer wins."""
    held = {}
    for layer in layers:
        for name in SETTING_NAMES:
            if (value := getattr(layer, name)) is not UNSET:
                held[name] = value
    return JobSettings(**held)


def conflicts(owner: str, layer: Sequence[Placed]) -> list[Problem]:
    """The settings that two places of one layer give differently."""
    problems = []
    for name in SETTING_NAMES:
        given = [(getattr(settings, name), where) for settings, where in layer]
        given = [(value, where) for value, where in given if value is not UNSET]
        for value, where in given[1:]:
            if value != given[0][0]:
                sentence = f"{name} is {given[0][0]!r} at {given[0][1]} but {value!r} at {where}; give it once."
                problems.append(Problem("setting_conflict", owner, sentence))
                break
    return problems


def lane_of(settings: JobSettings) -> Lane:
    """Where a job of these checked settings is routed."""
    queue = DEFAULT_QUEUE if isinstance(settings.queue, Unset) else settings.queue
    priority = Priority.MEDIUM if isinstance(settings.priority, Unset) else Priority(settings.priority)
    return Lane(queue, priority)


def policy_of(settings: JobSettings) -> JobPolicy:
    """The policy of these checked settings; what they do not give is the library's."""
    values: dict[str, Any] = {}
    for name in ("max_executions", "max_unstarted", "max_crashes", "error_detail"):
        if (value := getattr(settings, name)) is not UNSET:
            values[name] = value
    if not isinstance(limit := settings.execution_timeout, Unset):
        values["execution_timeout_ms"] = None if limit is None else limit // MILLISECOND
    for name, delay in (("retry", settings.retry_delay), ("unstarted", settings.unstarted_delay)):
        if not isinstance(delay, Unset):
            values[f"{name}_initial_ms"], values[f"{name}_max_ms"] = (end // MILLISECOND for end in delay)
    return msgspec.structs.replace(JobPolicy(), **values)
