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


class Nothing(Job):
    """Costs what every job costs, and no more."""

    note: str = "a payload of about a hundred bytes, since a job that carries nothing at all is not one that users have"


class Spin(Job):
    """Work of a fixed length."""

    iterations: int


class Stamp(Job):
    """Tells how long ago it was dispatched."""

    dispatched_at_ns: int


class Locate(Job):
    """Tells which process runs it."""


def application(store: str) -> Runwick:
    """The application on the store at this URL.

    Leases are renewed every second instead of every 15, so that a run of a few seconds has renewals in it as well.
    """
    clock = WorkerOptions(renewal_interval=timedelta(seconds=1), renewal_jitter=timedelta(milliseconds=100))
    rw = Runwick(NAME, store=store, worker=clock)
    for name, record in (("nothing", Nothing), ("spin", Spin), ("stamp", Stamp), ("locate", Locate)):
        rw.job(f"bench.{name}")(record)
    for handler in (do_nothing, do_spin, tell_delay, tell_process):
        rw.handler(handler)
    return rw


def do_nothing(job: Nothing) -> None:
    pass


def do_spin(job: Spin) -> None:
    spin(job.iterations)


def tell_delay(job: Stamp) -> int:
    return time.time_ns() - job.dispatched_at_ns


def tell_process(job: Locate) -> int:
    return os.getpid()


rw = application("sqlite:///bench.db")
