"""How quickly what was lost is found again: one expired lease among very many rows, and an executor that was killed.

The rows come from the store's own acts, so they are what an application with a large backlog has: pending jobs, and
jobs under healthy leases. The expired lease is a claim for a millisecond.
"""

import functools
import os
import signal
import time

from runwick.contracts.attempts import ClaimPlan
from runwick.policy.recover import recover
from runwick.runtime.ambient import SystemDice
from scripts.benchmarks.application import NAME, Locate, Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, median
from scripts.benchmarks.filling import fill_pending
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, fresh_ground
from scripts.benchmarks.supervised import Supervised

PENDING = 1_000_000
LEASED_PART = 100
"""One job under a lease for so many pending ones."""
EXPIRIES = 30
KILLS = 10
GOAL_MS = 5


def run(assignment: Assignment) -> Report:
    """Find one expired lease again and again, then kill executors."""
    pending = assignment.jobs or PENDING
    leased = pending // LEASED_PART
    found_ms = _found_ms(assignment, pending, leased)
    assignment.say(f"recover: killing {KILLS} executors")
    replaced_ms, durability = _replaced_ms(assignment)
    return Report(
        benchmark="recover",
        jobs=pending,
        durability=durability,
        ours={
            "recover_ms": {"median": median(found_ms), "max": round(max(found_ms), 3)},
            "replacement_ms": {"median": median(replaced_ms), "max": round(max(replaced_ms), 3)},
            "leased": leased,
            "recoveries": len(found_ms),
            "kills": len(replaced_ms),
        },
        floor={},
        ratio=None,
        figures=[
            Figure("recovered", f"{median(found_ms):.2f} ms", f"to close the one expired lease; the goal is {GOAL_MS}"),
            Figure("  slowest", f"{max(found_ms):.2f} ms", f"of {len(found_ms)}, beside {leased:,} healthy leases"),
            Figure("replaced", f"{median(replaced_ms):.2f} ms", "from killing an executor to its replacement's word"),
            Figure("  slowest", f"{max(replaced_ms):.2f} ms", f"of {len(replaced_ms)}"),
        ],
    )


def _found_ms(assignment: Assignment, pending: int, leased: int) -> list[float]:
    """Durations of the recover act, each with exactly one lease to find."""
    assignment.say(f"recover: filling {pending + leased:,} rows")
    decide = functools.partial(recover, dice=SystemDice())
    found_ms = []
    with fresh_ground(assignment.site) as ground:
        fill_pending(ground, pending + leased)
        _lease(ground, leased)
        store, shortest = ground.rw.store, ground.claim_plan(Nothing, attempts=1, lease_ms=1)
        for _ in range(EXPIRIES):
            _expire(ground, shortest)
            started = time.perf_counter()
            closed = store.run(store.recover(NAME, decide, CLAIM))
            found_ms.append(1_000 * (time.perf_counter() - started))
            assert closed == 1, f"one lease had run out, {closed} were closed"
    return found_ms


def _lease(ground: Ground, leases: int) -> None:
    """Put so many jobs under leases that outlast the measurement."""
    store, plan = ground.rw.store, ground.claim_plan(Nothing, lease_ms=3_600_000)
    held = 0
    while held < leases:
        held += len(store.run(store.claim(claimed_again(plan))).attempts)


def _expire(ground: Ground, shortest: ClaimPlan) -> None:
    """Claim one job for a millisecond and see that millisecond pass."""
    store = ground.rw.store
    (attempt,) = store.run(store.claim(claimed_again(shortest))).attempts
    assert attempt.begun
    time.sleep(0.005)


def _replaced_ms(assignment: Assignment) -> tuple[list[float], str]:
    """From SIGKILL to what the supervisor says when the replacement waits for work."""
    replaced_ms = []
    with fresh_ground(assignment.site) as ground, Supervised(ground.url, until_empty=False) as supervised:
        supervised.wait_for("ready", seconds=60)
        for _ in range(KILLS):
            executor = ground.result(ground.rw.dispatch(Locate()))
            supervised.take_in()
            since = len(supervised.seen)
            started = time.perf_counter()
            os.kill(executor, signal.SIGKILL)
            supervised.wait_for("executor_replaced", since=since, seconds=30)
            replaced_ms.append(1_000 * (time.perf_counter() - started))
        return replaced_ms, ground.rw.store.profile
