"""How long a page of a list takes in a large store, for every kind of filter, beside a look at one job by its id.

Some filters find a full page at once; the ones that find nothing look at as much as a page may look at. All are asked
in turn, and half of the pages of each took no longer than its figure.
"""

import time
from typing import Any, Final

from runwick.contracts.listing import JobFilter, JobPage, Reach, Within
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from scripts.benchmarks.application import NAME, Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, percentile
from scripts.benchmarks.filling import fill_ended, fill_finished, fill_pending
from scripts.benchmarks.ground import Ground, fresh_ground
from scripts.benchmarks.shapes import LANES

JOBS: Final = 1_000_000
PAGE: Final = 50
ROUNDS = 25
"""Pages of each filter."""
WARM_UP: Final = 3
"""Pages before the measurement: after a fill the first ones read from the disk."""
GOAL_MS: Final = 100
TENANT: Final = "a tenant"
_RARE: Final = "no job has this code"
_QUEUE: Final = LANES[0].queue
_FAILED: Final = frozenset({JobState.FAILED})
_LIVE: Final = frozenset({JobState.PENDING, JobState.RETRYING})

FILTERS: Final[dict[str, tuple[JobFilter, Within, str]]] = {
    "all": (JobFilter(), None, "no filter"),
    "succeeded": (JobFilter(states=frozenset({JobState.SUCCEEDED})), None, "those that succeeded"),
    "failed": (JobFilter(states=_FAILED), None, "those that failed"),
    "pending": (JobFilter(states=frozenset({JobState.PENDING})), None, "those that wait"),
    "running": (JobFilter(states=frozenset({JobState.RUNNING})), None, "those that run: none"),
    "queue": (JobFilter(queue=_QUEUE), None, "one queue"),
    "type": (JobFilter(name="bench.nothing"), None, "one type"),
    "tenant": (JobFilter(tenant=TENANT), None, "one tenant"),
    "reach": (JobFilter(), [Reach(frozenset({_QUEUE}), frozenset({None}))], "what one operator may see"),
    "code": (JobFilter(code=_RARE), None, "a code that no job has"),
    "failed_code": (JobFilter(states=_FAILED, code=_RARE), None, "those that failed with it"),
    "failed_tenant": (JobFilter(states=_FAILED, tenant="nobody"), None, "those of nobody that failed"),
    "live_code": (JobFilter(states=_LIVE, code=_RARE), None, "those that wait with a code that no job has"),
    "queue_code": (JobFilter(queue=_QUEUE, code=_RARE), None, "those of a queue with it"),
    "type_code": (JobFilter(name="bench.nothing", code=_RARE), None, "those of a type with it"),
    "tenant_code": (JobFilter(tenant=TENANT, code=_RARE), None, "those of a tenant with it"),
    "long_ago": (JobFilter(created_until_ms=0), None, "those from before there were any"),
}
"""By name: the filter, what may be seen, and what that means."""


def run(assignment: Assignment) -> Report:
    """Fill a store, then ask for a page of every filter in turn."""
    number = assignment.jobs or JOBS
    with fresh_ground(assignment.site) as ground:
        assignment.say(f"lists: preparing {number:,} jobs")
        job_id = _fill(ground, number)
        store = ground.rw.store
        assignment.say(f"lists: {len(FILTERS)} filters in turn, {ROUNDS} pages of each")
        asked: dict[str, Act[Any]] = {
            name: store.jobs(NAME, chosen, within, None, PAGE) for name, (chosen, within, _) in FILTERS.items()
        }
        asked["lookup"] = store.job(NAME, job_id)
        taken_ms: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(WARM_UP + ROUNDS):
            for name, act in asked.items():
                started = time.perf_counter()
                store.run(act)
                taken_ms[name].append(1_000 * (time.perf_counter() - started))
        durability = store.profile
    p50_ms, p99_ms = (
        {name: round(percentile(taken[WARM_UP:], percent), 3) for name, taken in taken_ms.items()}
        for percent in (50, 99)
    )
    slowest = max(FILTERS, key=p50_ms.__getitem__)
    lines = [Figure(name, f"{p50_ms[name]:.2f} ms", meaning) for name, (_, _, meaning) in FILTERS.items()]
    lines.append(Figure("slowest", f"{p50_ms[slowest]:.2f} ms", f"{slowest}; the goal is {GOAL_MS} ms or less"))
    lines.append(Figure("lookup", f"{p50_ms['lookup']:.2f} ms", "one job by its id"))
    return Report(
        benchmark="lists",
        jobs=number,
        durability=durability,
        ours={
            "slowest_ms": p50_ms[slowest],
            "slowest": slowest,
            "filters": {name: {"p50_ms": p50_ms[name], "p99_ms": p99_ms[name]} for name in FILTERS},
        },
        floor={"lookup_ms": p50_ms["lookup"]},
        ratio=round(p50_ms[slowest] / p50_ms["lookup"], 3),
        figures=lines,
    )


def _fill(ground: Ground, number: int) -> bytes:
    """Seven tenths have succeeded, and one of a tenant as well; one has failed, and one waits.

    Returns:
        The id of one of the jobs.
    """
    tenth = max(1, number // 10)
    fill_finished(ground, 7 * tenth)
    fill_ended(ground, tenth, JobState.SUCCEEDED, TENANT)
    fill_ended(ground, tenth, JobState.FAILED, "another tenant")
    fill_pending(ground, tenth, Nothing(), LANES)
    store = ground.rw.store
    page = JobPage([], None)
    while not page.jobs:  # a page may be empty although more follows
        page = store.run(store.jobs(NAME, JobFilter(tenant=TENANT), None, page.cursor, 1))
    return page.jobs[0].job_id
