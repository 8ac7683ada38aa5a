"""What executors of an application that computes with numpy and pandas cost, and what their options are worth.

Respawn: executors are killed while they wait; what counts is the time from the supervisor's knowing of the death until
the next one waits for work, as the supervisor tells it, and from the kill until that is told.

Memory: of executors that are ready, and again when each has run a job that groups rows and collects garbage. Private
memory is what one more executor costs; PSS is its part of all.

Options: matrices are multiplied by one job after the other on all executors, with each option and without it, in turn;
for `--nice` beside as many processes that compute all the time, in a session of their own.
"""

import contextlib
import datetime
import importlib.util
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click
import psutil

from runwick import Runwick
from scripts.benchmarks import numeric
from scripts.benchmarks.figures import Assignment, Figure, Report, median, percentile
from scripts.benchmarks.supervised import EXECUTORS, Supervised

KILLS: Final = 5
"""Of each executor of one supervisor; more in so short a time would make the next ones wait."""
ROWS: Final = 20_000
SIZE: Final = 300
TIMES: Final = 10
JOBS: Final = 400
GOAL_MS: Final = 10
GOAL_MB: Final = 10
_MB: Final = 1_000_000
_PRELOADED: Final = ("--preload", ",".join(numeric.MODULES))


class Case(NamedTuple):
    """One way to run executors."""

    name: str
    options: Sequence[str] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    is_crowded: bool = False
    """Whether other processes compute beside them."""


KEPT: Final = (
    Case("preloaded", _PRELOADED),
    Case("not frozen", _PRELOADED, {numeric.UNFREEZE: "1"}),
    Case("not preloaded"),
)
COMPUTING: Final = (
    Case("one thread", _PRELOADED),
    Case("their own threads", (*_PRELOADED, "--numeric-threads", "inherit")),
    Case("pinned", (*_PRELOADED, "--pin")),
    Case("crowded", _PRELOADED, is_crowded=True),
    Case("crowded, nice 10", (*_PRELOADED, "--nice", "10"), is_crowded=True),
)


class Memory(NamedTuple):
    """Of one executor, in bytes."""

    ready: int
    """Private, before it has run anything."""
    private: int
    """After that."""
    pss: int
    """After that."""


class Computed(NamedTuple):
    """What one run of all jobs came to."""

    jobs_per_s: float
    cpu_ms: float
    """Of handlers, for each job."""
    share: float
    """Of the executors' cores, in handlers."""


def run(assignment: Assignment) -> Report:
    """Kill, weigh, compute."""
    missing = [name for name in numeric.MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise click.ClickException(f"executors: {' and '.join(missing)} must be installed; make setup does that.")
    noticed_ms, killed_ms, bare_ms = _respawns(assignment)
    weights = {case.name: _weigh(assignment, case) for case in KEPT}
    jobs = assignment.jobs or JOBS
    computed = _compute(assignment, jobs)
    with _ground(assignment) as (_, rw):
        durability = rw.store.profile
    return Report(
        benchmark="executors",
        jobs=jobs,
        durability=durability,
        ours={
            "respawn_ms": _spread(noticed_ms),
            "respawn_ms_from_kill": _spread(killed_ms),
            "respawn_ms_without_imports": _spread(bare_ms),
            "respawns": len(noticed_ms),
            "memory": {
                name: {"ready_mb": _mb(one.ready), "private_mb": _mb(one.private), "pss_mb": _mb(one.pss)}
                for name, one in weights.items()
            },
            "computing": {
                name: {
                    "jobs_per_s": median([each.jobs_per_s for each in rounds]),
                    "cpu_ms_per_job": median([each.cpu_ms for each in rounds]),
                    "share_in_handlers": median([each.share for each in rounds]),
                }
                for name, rounds in computed.items()
            },
        },
        floor={},
        ratio=None,
        figures=[
            *_respawn_figures(noticed_ms, killed_ms, bare_ms),
            *[
                Figure(
                    name,
                    f"{_mb(one.ready)} MB",
                    f"private to an executor that is ready; {_mb(one.private)} MB after a job, PSS {_mb(one.pss)} MB",
                )
                for name, one in weights.items()
            ],
            *[
                Figure(
                    name,
                    f"{median([each.jobs_per_s for each in rounds]):.1f}/s",
                    f"multiplications; {median([each.cpu_ms for each in rounds]):.2f} ms of CPU each, "
                    f"{100 * median([each.share for each in rounds]):.1f} % of the executors' cores in handlers",
                )
                for name, rounds in computed.items()
            ],
        ],
    )


def _respawn_figures(noticed_ms: list[float], killed_ms: list[float], bare_ms: list[float]) -> list[Figure]:
    return [
        Figure(
            "respawn",
            f"{percentile(noticed_ms, 50):.2f} ms",
            f"from a death to its successor's being ready, numpy and pandas imported; the goal is {GOAL_MS}",
        ),
        Figure("  slowest", f"{max(noticed_ms):.2f} ms", f"of {len(noticed_ms)}"),
        Figure(
            "  from kill", f"{percentile(killed_ms, 50):.2f} ms", "until a process beside the supervisor has heard it"
        ),
        Figure("  bare", f"{percentile(bare_ms, 50):.2f} ms", f"with neither imported; slowest {max(bare_ms):.2f} ms"),
    ]


@contextlib.contextmanager
def _ground(assignment: Assignment) -> Iterator[tuple[str, Runwick]]:
    """A fresh store, by its URL and opened."""
    with assignment.site.store() as url:
        rw = numeric.application(url)
        rw.migrate()
        try:
            yield url, rw
        finally:
            rw.close()


@contextlib.contextmanager
def _supervised(url: str, case: Case, *, until_empty: bool) -> Iterator[Supervised]:
    """A supervisor whose executors are ready, or that has begun to empty the store."""
    with Supervised(
        url,
        until_empty=until_empty,
        application=numeric.__name__,
        options=case.options,
        environment=case.environment,
    ) as supervised:
        supervised.wait_for("ready")
        yield supervised


# Respawn -------------------------------------------------------------------------------------------------------------


def _respawns(assignment: Assignment) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds from deaths that were noticed, and from kills; and the former with nothing imported."""
    noticed_ms: list[float] = []
    killed_ms: list[float] = []
    bare_ms: list[float] = []
    for _ in range(assignment.rounds):
        assignment.say(f"executors: killing {EXECUTORS * KILLS}, and as many with nothing imported")
        _kill_all(assignment, KEPT[0], noticed_ms, killed_ms)
        _kill_all(assignment, KEPT[-1], bare_ms, [])
    return noticed_ms, killed_ms, bare_ms


def _kill_all(assignment: Assignment, case: Case, noticed_ms: list[float], killed_ms: list[float]) -> None:
    with _ground(assignment) as (url, _), _supervised(url, case, until_empty=False) as supervised:
        pids = [process.pid for process in _executors(supervised)]
        for _ in range(KILLS):
            for place, pid in enumerate(pids):
                supervised.take_in()
                since, began = len(supervised.seen), time.perf_counter()
                os.kill(pid, signal.SIGKILL)
                replaced = supervised.wait_for("executor_replaced", since=since, seconds=30)
                killed_ms.append(1_000 * (time.perf_counter() - began))
                noticed_ms.append(replaced["milliseconds"])
                pids[place] = replaced["pid"]


def _executors(supervised: Supervised) -> list[psutil.Process]:
    below = psutil.Process(supervised.pid).children(recursive=True)
    return [process for process in below if process.cmdline()[:1][0].startswith("runwick executor ")]


def _spread(durations_ms: Sequence[float]) -> dict[str, float]:
    return {"p50": round(percentile(durations_ms, 50), 3), "max": round(max(durations_ms), 3)}


# Memory --------------------------------------------------------------------------------------------------------------


def _weigh(assignment: Assignment, case: Case) -> Memory:
    """The middle executor, after each has run a job."""
    assignment.say(f"executors: memory, {case.name}")
    with _ground(assignment) as (url, rw), _supervised(url, case, until_empty=False) as supervised:
        executors = {process.pid: process for process in _executors(supervised)}
        ready = [process.memory_full_info().uss for process in executors.values()]
        idle = set(executors)
        while idle:
            receipts = [rw.dispatch(numeric.Group(ROWS)) for _ in range(2 * EXECUTORS)]
            idle -= {rw.wait(each, timeout=datetime.timedelta(seconds=60)).result(int) for each in receipts}
        full = [process.memory_full_info() for process in executors.values()]
    private, pss = [each.uss for each in full], [each.pss for each in full]
    return Memory(*(int(statistics.median(values)) for values in (ready, private, pss)))


def _mb(size_bytes: int) -> float:
    return round(size_bytes / _MB, 1)


# Options -------------------------------------------------------------------------------------------------------------


def _compute(assignment: Assignment, jobs: int) -> dict[str, list[Computed]]:
    found: dict[str, list[Computed]] = {case.name: [] for case in COMPUTING}
    for _ in range(assignment.rounds):
        for case in COMPUTING:
            assignment.say(f"executors: {jobs} multiplications, {case.name}")
            found[case.name].append(_computed(assignment, case, jobs))
    return found


def _computed(assignment: Assignment, case: Case, jobs: int) -> Computed:
    with _ground(assignment) as (url, rw):
        for begun in range(0, jobs, 100):
            rw.dispatch_many([numeric.Multiply(SIZE, TIMES)] * min(100, jobs - begun))
        with _crowd(case.is_crowded), _supervised(url, case, until_empty=True) as supervised:
            summary: dict[str, Any] = supervised.wait_for("summary")
    if summary["succeeded"] != jobs:
        raise click.ClickException(f"{jobs} jobs were dispatched, but the supervisor says {summary}")
    return Computed(
        jobs / summary["elapsed_s"],
        1_000 * summary["handler_cpu_s"] / jobs,
        summary["handler_cpu_s"] / (EXECUTORS * summary["elapsed_s"]),
    )


@contextlib.contextmanager
def _crowd(is_there: bool) -> Iterator[None]:
    """As many processes that compute as there are cores, in a session of their own."""
    command = [sys.executable, "-c", "while True: pass"]
    number = len(os.sched_getaffinity(0)) if is_there else 0
    others = [subprocess.Popen(command, start_new_session=True) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
