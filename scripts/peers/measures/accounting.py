"""What it costs us to measure every attempt: the same jobs with accounting and without."""

from typing import Final

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import System
from scripts.peers.trial import trial

WORK_MS: Final = 5
"""Of the jobs to which the cost is compared: what accounting takes of their CPU time."""
_OFF: Final = {"RUNWICK_RECORD_RESOURCE_USAGE": "false", "RUNWICK_RECORD_ALLOCATIONS": "false"}


def once(bench: Bench, system: System) -> Figures:
    """Work off the queue of the no-op measure twice."""
    with_us, without_us = _cpu_us(bench, system, {}), _cpu_us(bench, system, _OFF)
    cost_us = with_us - without_us
    return {
        "with_us": round(with_us, 1),
        "without_us": round(without_us, 1),
        "cost_us": round(cost_us, 1),
        "part_of_5_ms": round(100 * cost_us / (1_000 * WORK_MS), 2),
    }


def _cpu_us(bench: Bench, system: System, variables: dict[str, str]) -> float:
    """CPU time of all worker processes for one job."""
    with trial(bench.grounds, system, variables) as tried:
        drain = tried.drain("nothing", bench.count(system.noop_jobs, 200))
    return 1e6 * drain.workers_cpu_s / drain.jobs


MEASURE: Final = Measure(
    name="accounting",
    title="The cost of accounting",
    text="CPU time of all worker processes for each no-op job, with the cost of every attempt measured and stored, and "
    "without. None of the other systems measures CPU, memory or allocations of an attempt.",
    columns=(
        Column("with_us", "with, µs/job", 1),
        Column("without_us", "without, µs/job", 1),
        Column("cost_us", "difference, µs", 1),
        Column("part_of_5_ms", "% of a job of 5 ms", 2),
    ),
    once=once,
    round_s=20,
    rounds=3,
    full=True,
    ours_only=True,
)
