"""The share of the cores that reaches the handlers when they compute."""

import functools
from typing import Final

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import WORKERS, System
from scripts.peers.trial import trial

SECONDS: Final = 4
"""How long a perfect system would take."""


def once(work_ms: float, bench: Bench, system: System) -> Figures:
    """Work off one queue of jobs that take so long."""
    jobs = bench.count(round(WORKERS * SECONDS * 1_000 / work_ms), 40)
    with trial(bench.grounds, system, job_ms=work_ms) as tried:
        drain = tried.drain("spin", jobs, bench.iterations(work_ms))
    return {
        "jobs": jobs,
        "share": round(100 * drain.share, 2),
        "jobs_per_s": round(drain.jobs / drain.seconds, 1),
        "processes": drain.processes,
        "left": drain.left,
    }


def _measure(work_ms: int) -> Measure:
    return Measure(
        name=f"cpu-{work_ms}ms",
        title=f"Share of the cores in handlers, {work_ms} ms of pure Python per job",
        text=f"A full queue of jobs that each compute for {work_ms} ms. The share is CPU time within the handlers' "
        "bodies over the time of both cores, from when every worker process has ended a job until the last is over.",
        columns=(
            Column("share", "% of both cores", 1, compared="more"),
            Column("jobs_per_s", "jobs/s"),
            Column("jobs", "jobs"),
            Column("left", "left"),
        ),
        once=functools.partial(once, work_ms),
        rounds=3,
        full=work_ms != 5,
    )


MEASURES: Final = tuple(_measure(work_ms) for work_ms in (1, 5, 20, 200))
