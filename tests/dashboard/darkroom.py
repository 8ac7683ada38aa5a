"""An application that gives the pages something to show: work that succeeds, fails, crashes, is held up and goes on.

It runs on real executors, in the folder where its store is.
"""

import datetime
import os
import signal
import sys
import time
from pathlib import Path

from runwick import Job, JobContext, PermanentJobFailure, PerResource, RollingWindow, Runwick, job

MARKER = "<img src=x onerror=\"document.title='pwned'\">\u202e</script>'\"&"
"""What would run or turn text around if any page let it."""


@job("photo.develop", queue="prints")
class Develop(Job):
    """Takes time and memory by the size of its payload."""

    name: str
    film: str


@job("photo.mount", queue="prints", max_executions=2, retry_delay=(datetime.timedelta(milliseconds=5),) * 2)
class Mount(Job):
    how: str


@job(
    "mail.send",
    queue="mail",
    per_resource=(PerResource(lambda job: f"post office {job.to}", capacity=1),),
    rolling_window=RollingWindow(3, datetime.timedelta(hours=1)),
)
class Send(Job):
    to: str


@job("archive.hold", queue="archive")
class Hold(Job):
    """Runs until the file at `gate` is there."""

    gate: str


def develop(job: Develop) -> dict[str, int]:
    picture = [job.film[at : at + 64] for at in range(0, len(job.film), 2)]
    return {"strips": len(picture)}


def mount(job: Mount, ctx: JobContext) -> str:
    if job.how == "tear":
        raise ValueError(f"it tore: {MARKER}")
    if job.how == "refuse":
        raise PermanentJobFailure("frame_missing", f"no frame {MARKER}")
    if job.how == "crash" or (job.how == "stumble" and ctx.execution_number == 1):
        os.kill(os.getpid(), signal.SIGSEGV)
    return job.how


def send(job: Send) -> None: ...


def hold(job: Hold) -> None:
    while not Path(job.gate).exists():
        time.sleep(0.02)


def application(store: str) -> Runwick:
    """The application on a store."""
    rw = Runwick("darkroom", store=store)
    rw.add_jobs(sys.modules[__name__])
    for handler in (develop, mount, send, hold):
        rw.handler(handler)
    rw.queue("archive", max_concurrent=4)
    rw.pool("prints", queues=("prints", "archive"), concurrency=2)
    rw.pool("mail", queues=("mail",), concurrency=1)
    return rw


rw = application("sqlite:///darkroom.db")
