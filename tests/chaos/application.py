"""The application of the campaigns: every run leaves marks in one log, each a single append that survives any death.

The log's path comes from the environment, so that parent, zygote and executors need nothing from the campaign.
"""

import contextlib
import dataclasses
import datetime
import fcntl
import logging
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from runwick import JobContext, PermanentJobFailure, RedisOptions, Runwick
from runwick.contracts.identity import id_bytes
from runwick.contracts.limits import Fence
from tests.chaos import jobs
from tests.chaos.history import Mark
from tests.chaos.jobs import Alone, Die, Fail, Keyed, Metered, Scoped, Wait, Work
from tests.kills.application import FAST
from tests.supervisor import strikes

NAME = "chaos"
CLOCK = dataclasses.replace(
    FAST,
    cancellation_grace=datetime.timedelta(milliseconds=200),
    cleanup_budget=datetime.timedelta(milliseconds=500),
)
LEASE_MS = round(CLOCK.lease_duration.total_seconds() * 1_000)
RECHECK_S = 5
WATCHFUL = RedisOptions(profile_recheck_interval=datetime.timedelta(seconds=RECHECK_S))
_UNSTORABLE = "null \0, half a pair \ud800, and much of it: " + "é" * 30_000
NARROW_AT_ONCE = 3
_STARTED_FIELD = 19
"""Of what follows the name in /proc/self/stat: when the process was started."""


def declare(rw: Runwick) -> None:
    """What producers and workers say alike."""
    rw.add_jobs(jobs)
    rw.queue("narrow", max_concurrent=NARROW_AT_ONCE)


rw = Runwick(NAME, worker=CLOCK, redis=WATCHFUL)
declare(rw)
rw.pool("main", queues={"default": 3, "narrow": 1}, concurrency=2)
rw.pool("side", queues={"metered": 3, "narrow": 2}, lane_weights=(3, 2, 1), concurrency=1)
dice = random.SystemRandom()
logger = logging.getLogger(NAME)
logger.setLevel(logging.INFO)  # so that a record is made, which is all that an executor needs to keep its line

if strikes_folder := os.environ.get("CHAOS_STRIKES"):
    strikes.obey_as_executor(Path(strikes_folder))


class Log:
    """The log as one run has it open."""

    def __init__(self, ctx: JobContext) -> None:
        self._ctx = ctx
        self._descriptor = os.open(os.environ["CHAOS_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def mark(self, step: Literal["begin", "on", "end", "left", "accepted", "refused"], *fences: Fence) -> None:
        with open("/proc/self/stat", "rb") as stat:  # noqa: PTH123 - the cheapest way, and it is the run's own CPU
            born = int(stat.read().rpartition(b")")[2].split()[_STARTED_FIELD])
        mark = Mark(
            job_id=id_bytes(self._ctx.job_id),
            attempt_id=id_bytes(self._ctx.attempt_id),
            generation=self._ctx.generation,
            step=step,
            pid=os.getpid(),
            born=born,
            at_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            at_ms=time.time_ns() // 1_000_000,
            cpu_us=time.process_time_ns() // 1_000,
            fences=fences,
        )
        os.write(self._descriptor, msgspec.json.encode(mark) + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


@rw.provider
def log(ctx: JobContext) -> Iterator[Log]:
    opened = Log(ctx)
    opened.mark("begin", *ctx.fences)
    yield opened
    opened.close()


@rw.handler
def work(job: Work, log: Log) -> None:
    with _company(log) if job.leaves else contextlib.nullcontext():
        for _ in range(2):
            _compute(job.milliseconds / 2)
            log.mark("on")
    logger.info("computed %s ms", job.milliseconds)
    log.mark("end")


@rw.handler
def fail(job: Fail, log: Log) -> None:
    _compute(job.milliseconds)
    log.mark("on")
    if dice.random() < job.odds / 8:
        raise PermanentJobFailure("unwanted", _UNSTORABLE)
    if dice.random() < job.odds:
        raise ValueError(_UNSTORABLE)
    log.mark("end")


@rw.handler
def die(job: Die, log: Log) -> None:
    if dice.random() < job.odds:
        log.mark("on")
        match job.where:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(0)
            case "abort":
                os.abort()
    log.mark("end")


@rw.handler
def keyed(job: Keyed, log: Log) -> None:
    _compute(job.milliseconds)
    log.mark("on")
    if dice.random() < job.odds:
        raise ValueError("not this time")
    log.mark("end")


@rw.handler
def scoped(job: Scoped, ctx: JobContext, log: Log) -> None:
    for _ in range(2):
        _show(ctx, log)
        time.sleep(job.milliseconds / 2_000)
    _show(ctx, log)
    log.mark("end")


@rw.handler
def alone(job: Alone, ctx: JobContext, log: Log) -> None:
    _show(ctx, log)
    _compute(job.milliseconds)
    if dice.random() < job.odds:
        os.kill(os.getpid(), signal.SIGKILL)
    _show(ctx, log)
    log.mark("end")


@rw.handler
def metered(job: Metered, log: Log) -> None:
    _compute(job.milliseconds)
    log.mark("end")


@rw.handler
def wait(job: Wait, ctx: JobContext, log: Log) -> None:
    until_s = time.monotonic() + job.milliseconds / 1_000
    while time.monotonic() < until_s:
        log.mark("on")
        if job.listens:
            ctx.cancellation.wait(datetime.timedelta(milliseconds=10))
            ctx.cancellation.raise_if_set()
        else:
            time.sleep(0.01)
    log.mark("end")


def _show(ctx: JobContext, log: Log) -> None:
    """Use the resources that this run has tokens of. Each remembers the highest that it was shown, in a file, and takes
    no lower one; what it answers is in the log in the order in which it answered."""
    for fence in ctx.fences:
        path = Path(os.environ["CHAOS_FIELD"]) / f"resource-{fence.scope.encode().hex()}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            accepts = fence.value >= int.from_bytes(os.pread(descriptor, 8, 0))
            if accepts:
                os.pwrite(descriptor, fence.value.to_bytes(8), 0)
            log.mark("accepted" if accepts else "refused", fence)
        finally:
            os.close(descriptor)


def _compute(milliseconds: float) -> None:
    until_s = time.process_time() + milliseconds / 1_000
    while time.process_time() < until_s:
        pass


@contextlib.contextmanager
def _company(log: Log) -> Iterator[None]:
    """A child in a session of its own that marks as long as the run: whoever kills the executor must kill it too."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for _ in range(200):
            log.mark("left")
            time.sleep(0.005)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
