"""The application under fire: every run leaves marks in one log, each a single append that survives any death.

The log's path comes from the environment, so that parent, zygote and executors need nothing from the test.
"""

import datetime
import os
import time

from runwick import JobContext, Runwick, WorkerOptions
from tests.kills import jobs
from tests.kills.jobs import Drill

MARKS = 4
"""Marks of one run: begin, two on the way, end."""

# A sixtieth of the defaults, so that what a dead supervisor held comes back within two seconds.
FAST = WorkerOptions(
    lease_duration=datetime.timedelta(milliseconds=1500),
    lease_safety_margin=datetime.timedelta(milliseconds=250),
    renewal_interval=datetime.timedelta(milliseconds=375),
    renewal_jitter=datetime.timedelta(milliseconds=75),
    lease_watchdog_interval=datetime.timedelta(milliseconds=50),
    scheduler_allowance=datetime.timedelta(milliseconds=50),
    control_request_timeout=datetime.timedelta(milliseconds=250),
    control_retry_initial_backoff=datetime.timedelta(milliseconds=10),
    control_retry_max_backoff=datetime.timedelta(milliseconds=50),
    minimum_invocation_margin=datetime.timedelta(milliseconds=600),
    claim_resolution_budget=datetime.timedelta(milliseconds=400),
    begin_resolution_budget=datetime.timedelta(milliseconds=400),
    completion_resolution_budget=datetime.timedelta(milliseconds=750),
    recovery_scan_interval=datetime.timedelta(milliseconds=200),
    recovery_scan_jitter=datetime.timedelta(milliseconds=50),
)

rw = Runwick("fire", worker=FAST)
rw.add_jobs(jobs)


@rw.handler
def drill(job: Drill, ctx: JobContext) -> None:
    log = os.open(os.environ["FIRE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        for step in range(MARKS):
            now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            os.write(log, f"{job.number} {ctx.attempt_id} {os.getpid()} {step} {now_ns}\n".encode())
            until_s = time.process_time() + job.milliseconds / 1000 / MARKS
            while time.process_time() < until_s:
                pass
    finally:
        os.close(log)
