"""What a benchmark is asked, what it answers, and how the answer is laid out."""

import dataclasses
import math
import os
import platform
import sqlite3
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from runwick.version import __version__
from scripts.benchmarks.sites import Site
from scripts.benchmarks.supervised import EXECUTORS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Assignment:
    """What to measure, and how much of it."""

    store: str
    site: Site
    """Where the stores of this run stand: on a real disk, since durability is part of what is measured."""
    jobs: int | None
    """Number of jobs; None takes each benchmark's own."""
    seconds: float
    work_ms: float
    rounds: int
    shape: str | None = None
    """Of `claim`; None takes all."""
    say: Callable[[str], None]
    """Tells a waiting person what is going on."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One line of the table for people."""

    name: str
    value: str
    meaning: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """The answer of one benchmark. What does not apply is missing from `ours` and `floor`, or None."""

    benchmark: str
    jobs: int
    durability: str
    """The durability rule that the store confirms with every receipt."""
    ours: dict[str, Any]
    floor: dict[str, Any]
    ratio: float | None
    """Ours as a part of the floor."""
    figures: Sequence[Figure]

    def as_json(self, assignment: Assignment) -> dict[str, Any]:
        """All of it for machines, with what it was measured on."""
        return {
            "benchmark": self.benchmark,
            "store": assignment.store,
            "ours": {"jobs_per_s": None, "share_in_handlers": None, **self.ours},
            "floor": {"jobs_per_s": None, **self.floor},
            "ratio": self.ratio,
            "jobs": self.jobs,
            "rounds": assignment.rounds,
            "executors": EXECUTORS,
            "durability": self.durability,
            **surroundings(assignment.site),
        }

    def as_text(self) -> str:
        """The table for people."""
        widths = [max(len(getattr(figure, part)) for figure in self.figures) for part in ("name", "value")]
        lines = [f"{self.benchmark} · {self.jobs:,} jobs · {EXECUTORS} executors · {self.durability}"]
        lines += [f"  {f.name:<{widths[0]}}  {f.value:>{widths[1]}}  {f.meaning}" for f in self.figures]
        return "\n".join(lines)


def surroundings(site: Site) -> dict[str, Any]:
    """What a figure depends on beside our own code; `server` is None where the store is a file."""
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "server": site.server,
        "versions": {
            "runwick": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "msgspec": msgspec.__version__,
            "kernel": platform.release(),
        },
    }


def in_turn(rounds: int, *measurements: Callable[[], float]) -> list[list[float]]:
    """Measure each `rounds` times, one after the other, so that all meet the same moods of the machine.

    Returns:
        For each measurement, in their order, what it came to in every round.
    """
    taken = [[measure() for measure in measurements] for _ in range(rounds)]
    return [list(column) for column in zip(*taken, strict=True)]


def median(values: Sequence[float]) -> float:
    """The middle value, rounded for reading."""
    return round(statistics.median(values), 4)


def rounded(values: Sequence[float]) -> list[float]:
    """Every value of the rounds, in their order, rounded for reading."""
    return [round(value, 4) for value in values]


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: a value that was really measured."""
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def rate_text(rounds: Sequence[float]) -> str:
    """A median rate with the spread of its rounds."""
    return f"{statistics.median(rounds):,.0f}/s ({min(rounds):,.0f} to {max(rounds):,.0f})"


def share_text(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.1f} %"
