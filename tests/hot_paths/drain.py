"""Whole jobs that do nothing, dispatched before and run by a real supervisor with two executors until none is left."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from scripts.benchmarks.application import Nothing
from scripts.benchmarks.ground import Ground
from tests.hot_paths.acts import Readings, opened
from tests.hot_paths.system_calls import PROJECT, traced

JOBS: Final = 1_500
_READY: Final = r"{\"event\":\"ready\""
_OVER: Final = r"{\"event\":\"summary\""


def drained(url: str, folder: Path, read: Callable[[], Readings]) -> dict[str, float]:
    """What one job's share is of all system calls, from the moment in which everything was ready until nothing was
    left, and of what the store says meanwhile.

    Args:
        url: of a store in which there are no jobs.
        folder: for the log of calls.
        read: what of the store is to be shared out.
    """
    with opened(url) as rw:
        Ground(url, rw).fill(Nothing(), JOBS)
    command = [sys.executable, "-m", "runwick_supervisor.command", "scripts.benchmarks.application"]
    command += ["--app-dir", str(PROJECT), "--executors", "2", "--log-format", "json", "--until-empty"]
    before = read()
    calls = traced(command, url, folder / "drain").calls
    parent = executors = 0
    for call in calls:
        if _READY in call.what:
            parent = executors = 0
        if _OVER in call.what:
            break
        parent += call.of_main
        executors += not call.of_main
    after = read()
    totals: dict[str, float] = {"parent's system calls": parent, "executors' system calls": executors}
    totals |= {name: after[name] - before[name] for name in after}
    return {f"drain: {name.removesuffix(' per job')} per job": total / JOBS for name, total in totals.items()}
