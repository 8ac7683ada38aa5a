"""The application that the benchmarks run: small jobs that do exactly one thing.

`runwick-supervise` imports this module and finds the store of the measurement in ``RUNWICK_STORE``; the benchmark
opens the same store in its own process with `application`.
"""

import os
import time
from datetime import timedelta

from runwick import Job, PerResource, RollingWindow, Runwick, WorkerOptions
from scripts.benchmarks.spinning import spin

NAME = "bench"
RETRY_DELAY = timedelta(milliseconds=1)
"""Of `Linger`."""
AT_ONCE = 50
"""Of the `Scoped` jobs with one key, so many run at once…"""
PER_SECOND = 24
"""…and of the `Metered` ones so many begin within any second."""


class Nothing(Job):
    """Costs what every job costs, and no more."""

    note: str = "a payload of about a hundred bytes, since a job that carries nothing at all is not one that users have"


class Spin(Job):
    """Work of a fixed length."""

    iterations: int


class Stamp(Job):
    """Tells how long ago it was dispatched."""

    dispatched_at_ns: int


class Linger(Job):
    """Says when and where it runs, and goes on until it is killed."""

    number: int
    log: str


class Scoped(Job):
    """As `Nothing`, under a limit that it shares with those of its key."""

    key: str
    note: str = "about as many bytes as the job has that knows of no limit"


class Metered(Job):
    """As `Nothing`, under a limit that all of its type share."""

    note: str = "about as many bytes as the job has that knows of no limit, so that the two differ in nothing else"


def application(store: str) -> Runwick:
    """The application on the store at this URL.

    Leases are renewed every second instead of every 15, so that a run of a few seconds has renewals in it as well.
    """
    clock = WorkerOptions(renewal_interval=timedelta(seconds=1), renewal_jitter=timedelta(milliseconds=100))
    rw = Runwick(NAME, store=store, worker=clock)
    for name, record in (("nothing", Nothing), ("spin", Spin), ("stamp", Stamp)):
        rw.job(f"bench.{name}")(record)
    rw.job("bench.linger", max_executions=100, max_crashes=100, retry_delay=(RETRY_DELAY, RETRY_DELAY))(Linger)
    rw.job("bench.scoped", per_resource=(PerResource(key_of, AT_ONCE),))(Scoped)
    rw.job("bench.metered", rolling_window=RollingWindow(PER_SECOND, timedelta(seconds=1)))(Metered)
    for handler in (do_nothing, do_spin, tell_delay, linger, do_scoped, do_metered):
        rw.handler(handler)
    return rw


def do_nothing(job: Nothing) -> None:
    pass


def key_of(job: Scoped) -> str:
    return job.key


def do_scoped(job: Scoped) -> None:
    pass


def do_metered(job: Metered) -> None:
    pass


def do_spin(job: Spin) -> None:
    spin(job.iterations)


def tell_delay(job: Stamp) -> int:
    return time.time_ns() - job.dispatched_at_ns


def linger(job: Linger) -> None:
    with open(job.log, "a") as log:  # noqa: PTH123 - nothing that is not needed lies between the start and the line
        log.write(f"{job.number} {os.getpid()} {time.monotonic_ns()}\n")
    while True:
        time.sleep(60)


rw = application("sqlite:///bench.db")
