"""Whether a limit of so many runs per second is met by a real supervisor over very many waiting jobs: not more of them,
not fewer, and no second without one.

A run counts in the second in which it was claimed, for that is when it is charged to its window; seconds begin with the
first one. Beside that it is counted how often each job was moved: into the line, out of it, or to another due time.
"""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import click

from scripts.benchmarks.application import PER_SECOND, Metered
from scripts.benchmarks.figures import Assignment, Figure, Report, share_text
from scripts.benchmarks.filling import fill_pending
from scripts.benchmarks.ground import fresh_ground
from scripts.benchmarks.moves import Moves, watched
from scripts.benchmarks.supervised import Supervised

JOBS = 100_000
SECONDS = 60
GOAL: Final = 0.02
"""How far the share may be from 1."""
_PATIENCE_S: Final = 120
_LOOK_S: Final = 0.2
_AFTER_S: Final = 1.5
"""The supervisor goes on for so long behind the end, so that its end is not seen in the last second."""


def run(assignment: Assignment) -> Report:
    """Let a supervisor run for a minute and count."""
    jobs = assignment.jobs or JOBS
    with fresh_ground(assignment.site) as ground:
        assignment.say(f"rate: filling with {jobs:,} jobs")
        fill_pending(ground, jobs, Metered())
        assignment.say(f"rate: {SECONDS} s at {PER_SECOND} per second")
        with watched(ground) as watch:
            with Supervised(ground.url, until_empty=False) as supervised:
                supervised.wait_for("ready", seconds=_PATIENCE_S)
                first_ms = _first_grant_ms(watch)
                time.sleep(max(0.0, first_ms / 1_000 + SECONDS + _AFTER_S - time.time()))
            grants = [(at_ms - first_ms, moves) for at_ms, moves in watch.grants()]
            jobs_moved, moves, most = watch.moved()
        durability = ground.rw.store.profile
    moved = {"jobs": jobs_moved, "mean": round(moves / max(1, jobs_moved), 3), "max": most}
    return _report(jobs, durability, grants, moved)


def _report(jobs: int, durability: str, grants: Sequence[tuple[int, int]], moved: dict[str, Any]) -> Report:
    """
    Args:
        jobs: that waited.
        durability: of the store.
        grants: of each the time since the first one, in milliseconds, and how often its job was moved.
        moved: the same of all jobs that were ever moved.
    """
    expected = PER_SECOND * SECONDS
    counted = Counter(at_ms // 1_000 for at_ms, _ in grants if at_ms < 1_000 * SECONDS)
    per_second = [counted[second] for second in range(SECONDS)]
    share, idle = sum(per_second) / expected, per_second.count(0)
    refused = [moves for _, moves in grants if moves]
    of_refused = {
        "jobs": len(refused),
        "mean": round(sum(refused) / max(1, len(refused)), 3),
        "max": max(refused, default=0),
    }
    return Report(
        benchmark="rate",
        jobs=jobs,
        durability=durability,
        ours={
            "grants": sum(per_second),
            "expected": expected,
            "share": round(share, 4),
            "idle_seconds": idle,
            "per_second": per_second,
            "moves": moved,
            "moves_until_granted": of_refused,
        },
        floor={},
        ratio=round(share, 4),
        figures=[
            Figure("grants", f"{sum(per_second):,}", f"in {SECONDS} s; the limit is {PER_SECOND} per second"),
            Figure("share", share_text(share), f"of {expected:,}; the goal is 100 ± {100 * GOAL:g} %"),
            Figure("idle", f"{idle}", "seconds without a grant; the goal is 0"),
            Figure(
                "moved",
                f"{of_refused['mean']:.3f}",
                f"times each refused job until it ran, at most {of_refused['max']}",
            ),
            Figure("  all", f"{moved['mean']:.3f}", f"times each of {moved['jobs']:,} jobs, at most {moved['max']}"),
        ],
    )


def _first_grant_ms(watch: Moves) -> int:
    """When the first job was claimed, as soon as that is known.

    Raises:
        click.ClickException: none has within two minutes.
    """
    until_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s:
        if grants := watch.grants():
            return grants[0][0]
        time.sleep(_LOOK_S)
    raise click.ClickException(f"the supervisor ran no job within {_PATIENCE_S} s")
