"""How quickly what was lost runs again: one expired lease among very many rows, killed executors, killed supervisors.

The rows come from the store's own acts, so they are what an application with a large backlog has: pending jobs, and
jobs under healthy leases. The expired lease is a claim for a millisecond.

For the kills every executor is busy with a job that says when it runs, so a killed one's job waits for the replacement,
and after a crash for its retry delay. Jobs of a killed supervisor need not wait: the next one finds it dead by its run
file. Each supervisor sees so few deaths that its restart budget does not matter.
"""

import contextlib
import functools
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runwick.contracts.attempts import ClaimPlan
from runwick.policy.recover import recover
from runwick.runtime.ambient import SystemDice
from scripts.benchmarks.application import NAME, RETRY_DELAY, Linger, Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, median, percentile
from scripts.benchmarks.filling import fill_pending
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, fresh_ground
from scripts.benchmarks.supervised import EXECUTORS, Supervised

PENDING = 1_000_000
LEASED_PART = 100
"""One job under a lease for so many pending ones."""
EXPIRIES = 30
SUPERVISORS = 10
"""Killed, one after the other."""
KILLS = 5
"""Executors killed under each of them."""
GOAL_MS = 5
_PATIENCE_S = 60
_LOOK_S = 0.0005


class Kills(NamedTuple):
    """Milliseconds from a SIGKILL on."""

    executor_ms: list[float]
    """To the next run of the job."""
    replaced_ms: list[float]
    """To the word of the supervisor that the replacement waits for work."""
    supervisor_ms: list[float]
    """To the last of the next runs of all its jobs."""
    durability: str


def run(assignment: Assignment) -> Report:
    """Find one expired lease again and again, then kill executors and supervisors."""
    pending = assignment.jobs or PENDING
    leased = pending // LEASED_PART
    found_ms = _found_ms(assignment, pending, leased)
    assignment.say(f"recover: killing {SUPERVISORS} supervisors, and {KILLS} executors of each")
    kills = _kills(assignment)
    delay_ms = RETRY_DELAY.total_seconds() * 1_000
    return Report(
        benchmark="recover",
        jobs=pending,
        durability=kills.durability,
        ours={
            "recover_ms": {"median": median(found_ms), "max": round(max(found_ms), 3)},
            "replacement_ms": _percentiles(kills.replaced_ms),
            "executor_to_running_ms": _percentiles(kills.executor_ms),
            "supervisor_to_running_ms": _percentiles(kills.supervisor_ms),
            "retry_delay_ms": delay_ms,
            "leased": leased,
            "recoveries": len(found_ms),
            "kills": len(kills.executor_ms),
            "supervisor_kills": len(kills.supervisor_ms),
        },
        floor={},
        ratio=None,
        figures=[
            Figure("recovered", f"{median(found_ms):.2f} ms", f"to close the one expired lease; the goal is {GOAL_MS}"),
            Figure("  slowest", f"{max(found_ms):.2f} ms", f"of {len(found_ms)}, beside {leased:,} healthy leases"),
            *_figures("executor", kills.executor_ms, 99, f"killed until its job runs, retry delay {delay_ms:g} ms"),
            *_figures("replaced", kills.replaced_ms, 99, "from killing an executor to its replacement's word"),
            *_figures("supervisor", kills.supervisor_ms, 100, "killed, restarted at once, until its jobs run"),
        ],
    )


def _percentiles(durations_ms: list[float]) -> dict[str, float]:
    return {
        "p50": round(percentile(durations_ms, 50), 3),
        "p99": round(percentile(durations_ms, 99), 3),
        "max": round(max(durations_ms), 3),
    }


def _figures(name: str, durations_ms: list[float], high: int, meaning: str) -> list[Figure]:
    rank = "slowest" if high == 100 else f"p{high}"
    return [
        Figure(name, f"{percentile(durations_ms, 50):.2f} ms", meaning),
        Figure(f"  {rank}", f"{percentile(durations_ms, high):.2f} ms", f"of {len(durations_ms)}"),
    ]


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


class Run(NamedTuple):
    """What a lingering job wrote down at the start of a run."""

    pid: int
    at_ns: int
    """On the steady clock, which is the same for all processes."""


class Runs:
    """The lingering jobs' log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def after(self, number: int, since_ns: int) -> Run:
        """The first run of that job after a moment, as soon as there is one.

        Raises:
            TimeoutError: there was none within a minute.
        """
        until_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until_s:
            for line in self._path.read_text().splitlines():
                job, pid, at_ns = map(int, line.split())
                if job == number and at_ns > since_ns:
                    return Run(pid, at_ns)
            time.sleep(_LOOK_S)
        raise TimeoutError(f"job {number} did not run again within {_PATIENCE_S} s")


def _kills(assignment: Assignment) -> Kills:
    with fresh_ground(assignment.site) as ground, tempfile.TemporaryDirectory() as folder:
        kills = Kills([], [], [], ground.rw.store.profile)
        runs = Runs(Path(folder) / "runs")
        for number in range(EXECUTORS):
            ground.rw.dispatch(Linger(number, str(folder) + "/runs"))
        killed_ns = 0
        for _ in range(SUPERVISORS):
            with _killed_at_the_end(ground) as supervised:
                running = [runs.after(number, killed_ns) for number in range(EXECUTORS)]
                if killed_ns:
                    kills.supervisor_ms.append(_ms(max(run.at_ns for run in running) - killed_ns))
                for count in range(KILLS):
                    number = count % EXECUTORS
                    running[number] = _kill_one(supervised, runs, number, running[number], kills)
                killed_ns = time.monotonic_ns()
        with _killed_at_the_end(ground):
            kills.supervisor_ms.append(
                _ms(max(runs.after(number, killed_ns).at_ns for number in range(EXECUTORS)) - killed_ns)
            )
        return kills


@contextlib.contextmanager
def _killed_at_the_end(ground: Ground) -> Iterator[Supervised]:
    with Supervised(ground.url, until_empty=False) as supervised:
        try:
            yield supervised
        finally:
            supervised.kill()


def _kill_one(supervised: Supervised, runs: Runs, number: int, running: Run, kills: Kills) -> Run:
    """Kill the executor of a job; answers the job's next run."""
    supervised.take_in()
    since = len(supervised.seen)
    started_ns = time.monotonic_ns()
    os.kill(running.pid, signal.SIGKILL)
    supervised.wait_for("executor_replaced", since=since, seconds=30)
    kills.replaced_ms.append(_ms(time.monotonic_ns() - started_ns))
    again = runs.after(number, started_ns)
    kills.executor_ms.append(_ms(again.at_ns - started_ns))
    return again


def _ms(nanoseconds: int) -> float:
    return nanoseconds / 1_000_000
