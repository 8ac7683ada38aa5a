"""How soon a worker starts a job that another process dispatched: from before the call to inside the handler.

Twice: with the worker idle before every dispatch, and with dispatches `APART_S` apart, when the worker is never quite
idle and never busy, and a wake-up can come while it looks.
"""

import random
import time
from collections.abc import Iterator

from scripts.benchmarks.application import Stamp
from scripts.benchmarks.figures import Assignment, Figure, Report, percentile
from scripts.benchmarks.ground import Ground, fresh_ground
from scripts.benchmarks.supervised import Supervised

JOBS = 100
WARM_UP = 5
PAUSE_S = (0.12, 0.18)
"""Between two dispatches: long enough that the worker is idle again, and random, so that no timer's phase is met."""
APART_S = 0.003
APART_JOBS = 10
"""So many dispatches 3 ms apart for each of the others."""
GOAL_MS = {"sqlite": 5, "postgres": 1.5, "redis": 2}
GOAL_APART_P99_MS = 15
PERCENTILES = (50, 95, 99)


def run(assignment: Assignment) -> Report:
    """Dispatch one job at a time to a supervisor with nothing else to do, first seldom, then often."""
    jobs = assignment.jobs or JOBS
    assignment.say(f"latency: {jobs} jobs, one at a time, then {APART_JOBS * jobs:,} jobs {1_000 * APART_S:g} ms apart")
    with fresh_ground(assignment.site) as ground:
        with Supervised(ground.url, until_empty=False) as supervised:
            supervised.wait_for("ready", seconds=60)
            idle_ms = _delays_ms(ground, _with_pauses(WARM_UP + jobs))[WARM_UP:]
            apart_ms = _delays_ms(ground, _apart(APART_JOBS * jobs))
        durability = ground.rw.store.profile
    idle, apart = _percentiles(idle_ms), _percentiles(apart_ms)
    goal = f"the goal is {GOAL_MS[assignment.store]} ms or less"
    return Report(
        benchmark="latency",
        jobs=jobs,
        durability=durability,
        ours={
            "dispatch_to_start_ms": idle,
            "slowest_ms": round(max(idle_ms), 3),
            "apart_ms": 1_000 * APART_S,
            "apart_jobs": len(apart_ms),
            "apart_dispatch_to_start_ms": apart,
            "apart_slowest_ms": round(max(apart_ms), 3),
        },
        floor={},
        ratio=None,
        figures=[
            Figure("half", f"{idle['p50']:.2f} ms", f"of the jobs start within; {goal}"),
            Figure("95 of 100", f"{idle['p95']:.2f} ms", "start within, counted from before the dispatch call"),
            Figure("99 of 100", f"{idle['p99']:.2f} ms", "start within"),
            Figure(
                "half", f"{apart['p50']:.2f} ms", f"of the jobs start within, dispatched {1_000 * APART_S:g} ms apart"
            ),
            Figure("99 of 100", f"{apart['p99']:.2f} ms", f"start within; the goal is {GOAL_APART_P99_MS} ms or less"),
        ],
    )


def _delays_ms(ground: Ground, turns: Iterator[None]) -> list[float]:
    """Dispatch a job at every turn; answers how long each took to its start."""
    receipts = [ground.rw.dispatch(Stamp(time.time_ns())) for _ in turns]
    return [ground.result(receipt) / 1e6 for receipt in receipts]


def _with_pauses(turns: int) -> Iterator[None]:
    for _ in range(turns):
        time.sleep(random.uniform(*PAUSE_S))
        yield


def _apart(turns: int) -> Iterator[None]:
    """Turns in a fixed beat, whatever a dispatch takes; one that comes late does not shift the others."""
    first_s = time.perf_counter()
    for number in range(turns):
        time.sleep(max(0.0, first_s + number * APART_S - time.perf_counter()))
        yield


def _percentiles(values_ms: list[float]) -> dict[str, float]:
    return {f"p{percent}": round(percentile(values_ms, percent), 3) for percent in PERCENTILES}
