"""The job under fire, as the producer and the worker share it."""

import datetime

from runwick.contracts import Job, job

SOON = datetime.timedelta(milliseconds=1)


@job("fire.drill", max_executions=100, max_crashes=100, retry_delay=(SOON, SOON))
class Drill(Job):
    number: int
    milliseconds: float = 4.0
