"""Throughput of jobs that do nothing: everything that is left is ours.

Floor: the store's own claim and settle acts, 128 at a time, called back to back by one client on a store filled
alike. No worker can be quicker than the store under it; how near one comes is the ratio.
"""

import time

from runwick.contracts.outcomes import Answer
from scripts.benchmarks.application import Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, in_turn, median, rate_text, rounded, share_text
from scripts.benchmarks.ground import claimed_again, fresh_ground, succeeded
from scripts.benchmarks.sites import POSTGRES, REDIS, SQLITE
from scripts.benchmarks.supervised import completed, share_in_handlers

JOBS = 60_000
GOAL = {SQLITE: 0.55, POSTGRES: 0.8, REDIS: 0.75}


def run(assignment: Assignment) -> Report:
    """Measure floor and ours in turn."""
    jobs = assignment.jobs or JOBS
    shares: list[float] = []
    with fresh_ground(assignment.site) as ground:
        durability = ground.rw.store.profile

    def floor() -> float:
        assignment.say(f"noop: floor, {jobs:,} jobs")
        return _floor_jobs_per_s(assignment, jobs)

    def ours() -> float:
        assignment.say(f"noop: ours, {jobs:,} jobs")
        with fresh_ground(assignment.site) as ground:
            ground.fill(Nothing(), jobs)
            summary = completed(ground.url, jobs)
        shares.append(share_in_handlers(summary))
        return float(jobs / summary["elapsed_s"])

    floors, ourselves = in_turn(assignment.rounds, floor, ours)
    ratio, goal = round(median(ourselves) / median(floors), 4), GOAL[assignment.store]
    return Report(
        benchmark="noop",
        jobs=jobs,
        durability=durability,
        ours={
            "jobs_per_s": median(ourselves),
            "share_in_handlers": median(shares),
            "jobs_per_s_rounds": rounded(ourselves),
        },
        floor={"jobs_per_s": median(floors), "jobs_per_s_rounds": rounded(floors)},
        ratio=ratio,
        figures=[
            Figure("ours", rate_text(ourselves), "jobs run by runwick-supervise, from ready to the last settlement"),
            Figure("floor", rate_text(floors), "the store's claim and settle acts alone, one client, no handlers"),
            Figure("ratio", f"{ratio:.3f}", f"ours as a part of the floor; the goal is {goal} or more"),
            Figure("in handlers", share_text(median(shares)), "of the executors' cores; a handler here does nothing"),
        ],
    )


def _floor_jobs_per_s(assignment: Assignment, jobs: int) -> float:
    with fresh_ground(assignment.site) as ground:
        ground.fill(Nothing(), jobs)
        store, plan = ground.rw.store, ground.claim_plan(Nothing)
        settled = 0
        started = time.perf_counter()
        while attempts := store.run(store.claim(claimed_again(plan))).attempts:
            settled += store.run(store.settle(succeeded(attempts))).count(Answer.DONE)
        seconds = time.perf_counter() - started
    assert settled == jobs, f"the floor settled {settled} of {jobs} jobs"
    return jobs / seconds
