"""Throughput of jobs that do nothing: everything that is left is ours.

Floor: the store's own claim and settle acts, 128 at a time, called back to back by one client on a file filled
alike. No worker can be quicker than the store under it; how near one comes is the ratio.
"""

import time

from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from scripts.benchmarks.application import Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, in_turn, median, rate_text, rounded, share_text
from scripts.benchmarks.ground import claimed_again, fresh_ground
from scripts.benchmarks.supervised import completed, share_in_handlers

JOBS = 60_000
GOAL = 0.45

_OUTCOME = Outcome(
    OutcomeKind.SUCCEEDED,
    usage=Usage(
        wall_us=25,
        cpu_user_us=20,
        cpu_system_us=5,
        cpu_children_us=0,
        rss_peak_bytes=32_000_000,
        rss_end_bytes=32_000_000,
        faults_minor=1,
        faults_major=0,
        switches_voluntary=0,
        switches_involuntary=0,
    ),
    begun_at_ms=1_750_000_000_000,
)
"""What a real run of `Nothing` leaves behind, so that the floor writes rows of the same size."""


def run(assignment: Assignment) -> Report:
    """Measure floor and ours in turn."""
    jobs = assignment.jobs or JOBS
    shares: list[float] = []
    with fresh_ground(assignment.folder) as ground:
        durability = ground.rw.store.profile

    def floor() -> float:
        assignment.say(f"noop: floor, {jobs:,} jobs")
        return _floor_jobs_per_s(assignment, jobs)

    def ours() -> float:
        assignment.say(f"noop: ours, {jobs:,} jobs")
        with fresh_ground(assignment.folder) as ground:
            ground.fill(Nothing(), jobs)
            summary = completed(ground.url, jobs)
        shares.append(share_in_handlers(summary))
        return float(jobs / summary["elapsed_s"])

    floors, ourselves = in_turn(assignment.rounds, floor, ours)
    ratio = round(median(ourselves) / median(floors), 4)
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
            Figure("ratio", f"{ratio:.3f}", f"ours as a part of the floor; the goal is {GOAL} or more"),
            Figure("in handlers", share_text(median(shares)), "of the executors' cores; a handler here does nothing"),
        ],
    )


def _floor_jobs_per_s(assignment: Assignment, jobs: int) -> float:
    with fresh_ground(assignment.folder) as ground:
        ground.fill(Nothing(), jobs)
        store, plan = ground.rw.store, ground.claim_plan(Nothing)
        settled = 0
        started = time.perf_counter()
        while attempts := store.run(store.claim(claimed_again(plan))).attempts:
            settlements = [Settlement(attempt, _OUTCOME, JobState.SUCCEEDED) for attempt in attempts]
            settled += store.run(store.settle(settlements)).count(Answer.DONE)
        seconds = time.perf_counter() - started
    assert settled == jobs, f"the floor settled {settled} of {jobs} jobs"
    return jobs / seconds
