"""The jobs of the campaigns, as clients and workers share them. What a run does stands in its payload."""

import datetime
from typing import Final

from runwick.contracts import Job, job
from runwick.contracts.limits import PerResource, RollingWindow, RollingWindowPerResource, UniqueWithinWindow

_SOON = datetime.timedelta(milliseconds=1)
_SECOND = datetime.timedelta(seconds=1)
WINDOW = datetime.timedelta(milliseconds=500)
"""Of window keys."""
QUEUES: Final = ("default", "narrow", "metered")


@job("chaos.work", max_executions=100, max_crashes=100, retry_delay=(_SOON, _SOON))
class Work(Job):
    """Computes for a while and succeeds, however often it is killed."""

    milliseconds: float
    leaves: bool = False
    """Whether it starts a process that goes on when the run has ended, unless somebody ends it."""
    ballast: str = ""


@job(
    "chaos.fail", max_executions=4, retry_delay=(datetime.timedelta(milliseconds=2), datetime.timedelta(milliseconds=8))
)
class Fail(Job):
    """Fails now and then, with an error that is hard to keep."""

    odds: float
    milliseconds: float = 1.0


@job("chaos.die", max_executions=5, max_crashes=2, retry_delay=(_SOON, _SOON))
class Die(Job):
    """Kills its own executor, somewhere."""

    odds: float
    where: str


@job("chaos.wait", max_executions=100, max_crashes=100, retry_delay=(_SOON, _SOON))
class Wait(Job):
    """Waits until it is cancelled, or its time is over."""

    milliseconds: float
    listens: bool
    """Whether it looks at its token."""


@job(
    "chaos.keyed",
    max_executions=5,
    max_crashes=100,
    retry_delay=(_SOON, _SOON),
    unique_while_active=lambda record: record.account,
    unique_within_window=UniqueWithinWindow(lambda record: record.request, WINDOW),
)
class Keyed(Job):
    """One for each account at a time, and one for each request within a window."""

    account: str
    request: str
    milliseconds: float
    odds: float = 0.0
    """Of failing."""


@job(
    "chaos.scoped",
    queue="narrow",
    max_executions=100,
    max_crashes=100,
    retry_delay=(_SOON, _SOON),
    max_concurrent=2,
    per_resource=(
        PerResource(lambda record: record.printer, 1),
        PerResource(lambda record: record.scanner, 2),
    ),
)
class Scoped(Job):
    """Uses a printer that takes one job at a time, and refuses whoever comes late, and a scanner that takes two."""

    printer: str
    scanner: str
    milliseconds: float


@job("chaos.alone", queue="narrow", max_executions=1, per_resource=(PerResource(lambda record: record.printer, 1),))
class Alone(Job):
    """Uses a printer, and is tried once: whatever happens to it, the printer is free again."""

    printer: str
    milliseconds: float
    odds: float
    """Of killing its own executor."""


@job(
    "chaos.metered",
    queue="metered",
    max_executions=100,
    max_crashes=100,
    retry_delay=(_SOON, _SOON),
    rolling_window=RollingWindow(50, _SECOND),
    rolling_window_per_resource=(RollingWindowPerResource(lambda record: record.provider, 12, _SECOND),),
)
class Metered(Job):
    """Calls a provider that counts."""

    provider: str
    milliseconds: float
    ballast: str = ""


RECORDS: Final = (Work, Fail, Die, Wait, Keyed, Scoped, Alone, Metered)
