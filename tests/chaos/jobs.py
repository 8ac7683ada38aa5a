"""The jobs of the campaigns, as clients and workers share them. What a run does stands in its payload."""

import datetime

from runwick.contracts import Job, job

_SOON = datetime.timedelta(milliseconds=1)


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


RECORDS = (Work, Fail, Die, Wait)
