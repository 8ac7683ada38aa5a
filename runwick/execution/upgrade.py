"""Brings a payload that was stored in an older shape to the current record. The steps are the application's code."""

from runwick.contracts.errors import DispatchValidationError
from runwick.contracts.jobs import Job
from runwick.declarations.jobs import JobEntry
from runwick.declarations.upgrades import Route


class UpgradeRefused(Exception):
    """A step gave something else than it says."""


def upgraded(old: Job, route: Route, entry: JobEntry) -> Job:
    """The current record that the steps of `route` make of `old`; checked like a record that is dispatched.

    Raises:
        UpgradeRefused: a step gave no such record.
        BaseException: whatever a step raises.
    """
    job = old
    for step in route.steps:
        job = step.function(job)
        if not issubclass(type(job), step.gives):
            given, wanted = type(job).__qualname__, step.gives.__qualname__
            raise UpgradeRefused(f"{step.function.__qualname__} gave {given}, not {wanted}")
    try:
        entry.codec.encode(job)
    except DispatchValidationError as refused:
        last = route.steps[-1].function.__qualname__
        raise UpgradeRefused(f"{last} gave what is no payload: {refused.message}") from None
    return job
