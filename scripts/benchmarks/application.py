"""The application that the benchmarks run: small jobs that do exactly one thing.

`runwick-supervise` imports this module and finds the store of the measurement in ``RUNWICK_STORE``; the benchmark
opens the same store in its own process with `application`.
"""

import os
import time
from datetime import timedelta

from runwick import Job, Runwick, WorkerOptions
from scripts.benchmarks.spinning import spin

NAME = "bench"
RETRY_DELAY = timedelta(milliseconds=1)
"""Of `Linger`."""


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


def application(store: str) -> Runwick:
    """The application on the store at this URL.

    Leases are renewed every second instead of every 15, so that a run of a few seconds has renewals in it as well.
    """
    clock = WorkerOptions(renewal_interval=timedelta(seconds=1), renewal_jitter=timedelta(milliseconds=100))
    rw = Runwick(NAME, store=store, worker=clock)
    for name, record in (("nothing", Nothing), ("spin", Spin), ("stamp", Stamp)):
        rw.job(f"bench.{name}")(record)
    rw.job("bench.linger", max_executions=100, max_crashes=100, retry_delay=(RETRY_DELAY, RETRY_DELAY))(Linger)
    for handler in (do_nothing, do_spin, tell_delay, linger):
        rw.handler(handler)
    return rw


def do_nothing(job: Nothing) -> None:
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
