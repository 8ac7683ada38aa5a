"""How soon an idle worker starts a job that another process dispatched: from before the call to inside the handler."""

import random
import time

from scripts.benchmarks.application import Stamp
from scripts.benchmarks.figures import Assignment, Figure, Report, percentile
from scripts.benchmarks.ground import fresh_ground
from scripts.benchmarks.supervised import Supervised

JOBS = 100
WARM_UP = 5
PAUSE_S = (0.12, 0.18)
"""Between two dispatches: long enough that the worker is idle again, and random, so that no timer's phase is met."""
GOAL_MS = 5
PERCENTILES = (50, 95, 99)


def run(assignment: Assignment) -> Report:
    """Dispatch one job at a time to a supervisor with nothing else to do."""
    jobs = assignment.jobs or JOBS
    assignment.say(f"latency: {jobs} jobs, one at a time")
    with fresh_ground(assignment.folder) as ground:
        with Supervised(ground.url, until_empty=False) as supervised:
            supervised.wait_for("ready", seconds=60)
            receipts = []
            for _ in range(WARM_UP + jobs):
                time.sleep(random.uniform(*PAUSE_S))
                receipts.append(ground.rw.dispatch(Stamp(time.time_ns())))
            delays_ms = [ground.result(receipt) / 1e6 for receipt in receipts[WARM_UP:]]
        durability = ground.rw.store.profile
    measured = {f"p{percent}": round(percentile(delays_ms, percent), 3) for percent in PERCENTILES}
    return Report(
        benchmark="latency",
        jobs=jobs,
        durability=durability,
        ours={"dispatch_to_start_ms": measured, "slowest_ms": round(max(delays_ms), 3)},
        floor={},
        ratio=None,
        figures=[
            Figure("half", f"{measured['p50']:.2f} ms", f"of the jobs start within; the goal is {GOAL_MS} ms or less"),
            Figure("95 of 100", f"{measured['p95']:.2f} ms", "start within, counted from before the dispatch call"),
            Figure("99 of 100", f"{measured['p99']:.2f} ms", "start within"),
        ],
    )
