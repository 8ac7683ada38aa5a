"""The share of the cores that reaches the handlers when they compute, at a fixed length of pure-Python work per job.

Floor: as many raw forks as there are executors, spinning over the same units without a store for the same time. The
share is CPU time of the runs, decoding and encoding included, over the time of all cores. Units per second are shown
beside it: the same unit takes a little longer where other work passes through the caches.
"""

import json
import subprocess
import sys

from scripts.benchmarks.application import Spin
from scripts.benchmarks.figures import Assignment, Figure, Report, in_turn, median, rate_text, rounded, share_text
from scripts.benchmarks.ground import fresh_ground
from scripts.benchmarks.spinning import iterations_of
from scripts.benchmarks.supervised import EXECUTORS, PROJECT, completed, share_in_handlers

GOAL = 0.97


def run(assignment: Assignment) -> Report:
    """Calibrate one unit of work, then measure floor and ours in turn."""
    iterations = iterations_of(assignment.work_ms)
    seconds = assignment.seconds
    jobs = assignment.jobs or max(1, round(EXECUTORS * seconds * 1_000 / assignment.work_ms))
    shares: list[float] = []
    floor_shares: list[float] = []
    with fresh_ground(assignment.site) as ground:
        durability = ground.rw.store.profile

    def floor() -> float:
        assignment.say(f"cpu: floor, {EXECUTORS} raw forks for {seconds:g} s")
        command = [sys.executable, "-m", "scripts.benchmarks.forks", str(iterations), str(seconds), str(EXECUTORS)]
        forks = json.loads(subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout)
        floor_shares.append(forks["cpu_s"] / (EXECUTORS * forks["wall_s"]))
        return float(forks["units"] / forks["wall_s"])

    def ours() -> float:
        assignment.say(f"cpu: ours, {jobs:,} jobs of {assignment.work_ms:g} ms")
        with fresh_ground(assignment.site) as ground:
            ground.fill(Spin(iterations), jobs)
            summary = completed(ground.url, jobs)
        shares.append(share_in_handlers(summary))
        return float(jobs / summary["elapsed_s"])

    floors, ourselves = in_turn(assignment.rounds, floor, ours)
    share, floor_share = median(shares), median(floor_shares)
    ratio, units_ratio = round(share / floor_share, 4), round(median(ourselves) / median(floors), 4)
    return Report(
        benchmark="cpu",
        jobs=jobs,
        durability=durability,
        ours={
            "jobs_per_s": median(ourselves),
            "share_in_handlers": share,
            "jobs_per_s_rounds": rounded(ourselves),
            "share_in_handlers_rounds": rounded(shares),
            "work_ms": assignment.work_ms,
            "units_ratio": units_ratio,
        },
        floor={
            "jobs_per_s": median(floors),
            "share_of_cores": floor_share,
            "jobs_per_s_rounds": rounded(floors),
            "share_of_cores_rounds": rounded(floor_shares),
        },
        ratio=ratio,
        figures=[
            Figure("ours", rate_text(ourselves), f"jobs of {assignment.work_ms:g} ms, each claimed, run and settled"),
            Figure("floor", rate_text(floors), "the same units of work in raw forks without a store"),
            Figure("in handlers", share_text(share), "CPU time of the handlers as a share of the executors' cores"),
            Figure("forks' share", share_text(floor_share), "CPU time of the raw forks as a share of the same cores"),
            Figure("ratio", f"{ratio:.3f}", f"our share as a part of the forks'; at 5 ms the goal is {GOAL} or more"),
            Figure("units", f"{units_ratio:.3f}", "units of work per second as a part of the forks', caches included"),
        ],
    )
