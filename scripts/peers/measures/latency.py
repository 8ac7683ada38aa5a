"""How soon an idle worker starts a job that another process dispatches."""

import time
from typing import Final

from scripts.benchmarks.figures import percentile
from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import System
from scripts.peers.trial import Stalled, trial

JOBS: Final = 100
WARM_UP: Final = 10
PAUSE_MS: Final = (50, 80)
"""Between two dispatches: random, so that no timer's phase is met, and long enough that the worker is idle again."""
_SETTLE_S: Final = 1.0
"""Between the first job of the workers and the first dispatch that counts: so that all of them are up."""


def once(bench: Bench, system: System) -> Figures:
    """Dispatch one job at a time."""
    jobs = WARM_UP + bench.count(JOBS)
    with trial(bench.grounds, system) as tried, tried.working() as tree:
        time.sleep(_SETTLE_S)
        before = tried.board.standing().ended
        tried.dispatch("stamp", jobs, 0, "--pause-ms", *map(str, PAUSE_MS))
        tried.wait_for(tree, before + jobs)
        delays_ms = [delay / 1e6 for (delay,) in tried.board.lines("delay")][WARM_UP:]
    if not delays_ms:
        raise Stalled("no job told when it started")
    told = {f"p{percent}_ms": round(percentile(delays_ms, percent), 3) for percent in (50, 95, 99)}
    return {**told, "slowest_ms": round(max(delays_ms), 3), "jobs": len(delays_ms)}


MEASURE: Final = Measure(
    name="latency",
    title="From dispatch to start, idle",
    text="One process dispatches a job, waits 50 to 80 ms, dispatches the next one; from before the call to inside "
    "the handler, in milliseconds.",
    columns=(
        Column("p50_ms", "p50", 2, compared="less"),
        Column("p95_ms", "p95", 2, compared="less"),
        Column("p99_ms", "p99", 2, compared="less"),
        Column("slowest_ms", "slowest", 2),
        Column("jobs", "jobs"),
    ),
    once=once,
    round_s=12,
)
