"""How quickly one producer dispatches, alone and next to a worker at full speed, and how quickly eight processes do.

Floor: the store's dispatch act with commands that were prepared before the clock ran, so that the difference is what
checking and serialising a job costs.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from runwick.contracts.dispatching import BATCH_MAX_ITEMS
from scripts.benchmarks.application import Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, in_turn, median, percentile, rate_text, rounded
from scripts.benchmarks.filling import fill_pending
from scripts.benchmarks.ground import fresh_ground, ready_commands
from scripts.benchmarks.supervised import PROJECT, Supervised

JOBS = 5_000
"""Dispatches of one measurement; batches hold ten times as many jobs in all."""
PRODUCERS = 8
"""Processes that dispatch at once, all of the measurement's jobs between them."""
BACKLOG = 80
"""Jobs that lie before the worker, for each single dispatch of the first part."""
BACKLOG_PER_S = 100_000
"""The measurement under load takes a second for so many of them, and at least one: more than a worker on two cores
takes away."""
PAUSE_S = (0.001, 0.005)
GOAL_P99_MS = 20


def run(assignment: Assignment) -> Report:
    """Single dispatches, batches, single ones of several producers, and single ones under load."""
    jobs = assignment.jobs or JOBS
    assignment.say(f"dispatch: {jobs:,} single, by one producer and by {PRODUCERS}, {10 * jobs:,} in batches")
    singles = _in_turn(assignment, jobs, 1)
    batches = _in_turn(assignment, 10 * jobs, BATCH_MAX_ITEMS)
    (together,) = in_turn(assignment.rounds, lambda: _together(assignment, jobs))
    loaded_ms, worker_jobs_per_s, durability = _under_load(assignment, jobs)
    loaded = {f"p{percent}": round(percentile(loaded_ms, percent), 3) for percent in (50, 99)}
    ratio = round(median(singles[1]) / median(singles[0]), 4)
    return Report(
        benchmark="dispatch",
        jobs=jobs,
        durability=durability,
        ours={
            "jobs_per_s": median(singles[1]),
            "batched_jobs_per_s": median(batches[1]),
            "producers": PRODUCERS,
            "producers_jobs_per_s": median(together),
            "producers_jobs_per_s_rounds": rounded(together),
            "under_load_ms": loaded,
            "under_load_dispatches": len(loaded_ms),
            "under_load_worker_jobs_per_s": worker_jobs_per_s,
        },
        floor={"jobs_per_s": median(singles[0]), "batched_jobs_per_s": median(batches[0])},
        ratio=ratio,
        figures=[
            Figure("single", rate_text(singles[1]), "blocking dispatches, each confirmed on disk"),
            Figure("  floor", rate_text(singles[0]), "the store's act alone, commands ready"),
            Figure("batches", rate_text(batches[1]), f"jobs in batches of {BATCH_MAX_ITEMS}"),
            Figure("  floor", rate_text(batches[0]), "the store's act alone, commands ready"),
            Figure(
                "producers", rate_text(together), f"single dispatches of {PRODUCERS} processes at once, each confirmed"
            ),
            Figure(
                "half", f"{loaded['p50']:.2f} ms", f"of {len(loaded_ms):,} dispatches within, next to a busy worker"
            ),
            Figure("99 of 100", f"{loaded['p99']:.2f} ms", f"within; the goal is {GOAL_P99_MS} ms or less"),
            Figure("  worker", f"{worker_jobs_per_s:,.0f}/s", "jobs that the worker ran meanwhile"),
        ],
    )


def _in_turn(assignment: Assignment, jobs: int, batch: int) -> list[list[float]]:
    """Rates of floor and ours, each on a fresh store."""

    def floor() -> float:
        with fresh_ground(assignment.site) as ground:
            store, commands = ground.rw.store, ready_commands(ground.rw, Nothing(), jobs)
            batches = [commands[start : start + batch] for start in range(0, jobs, batch)]
            return jobs / _seconds(lambda batch: store.run(store.dispatch(batch)), batches)

    def ours() -> float:
        with fresh_ground(assignment.site) as ground:
            if batch == 1:
                return jobs / _seconds(ground.rw.dispatch, [Nothing()] * jobs)
            return jobs / _seconds(ground.rw.dispatch_many, [[Nothing()] * batch] * (jobs // batch))

    return in_turn(assignment.rounds, floor, ours)


def _seconds(send: Callable[[Any], object], values: Sequence[Any]) -> float:
    started = time.perf_counter()
    for value in values:
        send(value)
    return time.perf_counter() - started


def _together(assignment: Assignment, jobs: int) -> float:
    """The rate of single dispatches of several processes."""
    with fresh_ground(assignment.site) as ground:
        command = [sys.executable, "-m", "scripts.benchmarks.producers", str(jobs), str(PRODUCERS)]
        environment = {**os.environ, "RUNWICK_STORE": ground.url}
        ended = subprocess.run(command, cwd=PROJECT, env=environment, check=True, stdout=subprocess.PIPE)
        told = json.loads(ended.stdout)
        return float(told["jobs"] / told["wall_s"])


def _under_load(assignment: Assignment, jobs: int) -> tuple[list[float], float, str]:
    """Durations of single dispatches while a supervisor has a backlog, its rate meanwhile, and the durability."""
    backlog = max(BACKLOG * jobs, BACKLOG_PER_S)
    assignment.say(f"dispatch: next to a worker with {backlog:,} jobs before it")
    taken_ms: list[float] = []
    with fresh_ground(assignment.site) as ground:
        fill_pending(ground, backlog)
        with Supervised(ground.url, until_empty=False) as supervised:
            supervised.wait_for("ready", seconds=60)
            until = time.monotonic() + backlog / BACKLOG_PER_S
            while time.monotonic() < until:
                time.sleep(random.uniform(*PAUSE_S))
                started = time.perf_counter()
                ground.rw.dispatch(Nothing())
                taken_ms.append(1_000 * (time.perf_counter() - started))
            supervised.take_in()
            progress = supervised.wait_for("progress", since=len(supervised.seen))
        if progress["done"] >= backlog:
            raise click.ClickException(f"the worker ran out of its {backlog:,} jobs while dispatches were measured")
        return taken_ms, round(progress["done"] / progress["elapsed_s"], 1), ground.rw.store.profile
