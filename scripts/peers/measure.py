"""What a measure is, and what it has to work with."""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks.spinning import iterations_of
from scripts.peers.grounds import Grounds
from scripts.peers.system import System

QUICK: Final = 200
"""With ``--quick`` counts are so many times smaller: to see that everything runs, not to measure."""


class Bench:
    """One run of the comparison.

    Args:
        grounds: the servers.
        full: whether to measure all there is.
        quick: whether only to try whether everything runs.
        say: tells a waiting person what is going on.
    """

    def __init__(self, grounds: Grounds, *, full: bool, quick: bool, say: Callable[[str], None]) -> None:
        self.grounds, self.full, self.quick, self.say = grounds, full, quick, say
        self._iterations: dict[float, int] = {}

    @property
    def folder(self) -> Path:
        """Where files lie."""
        return self.grounds.folder

    def count(self, number: int, least: int = 20) -> int:
        """So many; fewer if this is only a try, but never fewer than `least`."""
        return max(min(number, least), number // QUICK) if self.quick else number

    def iterations(self, work_ms: float) -> int:
        """How many iterations of `work.spin` take so long, by one calibration for everybody."""
        if work_ms not in self._iterations:
            self._iterations[work_ms] = iterations_of(work_ms)
        return self._iterations[work_ms]


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a measure's table."""

    key: str
    """Of a figure in what a round answers."""
    head: str
    digits: int = 0
    compared: str = ""
    """Ours as a part or a multiple of it: ``more`` is better, or ``less``; nothing is compared without."""


Figures = Mapping[str, Any]
"""What one round of one system came to: numbers by key, texts by key, or ``problem`` in words."""


@dataclasses.dataclass(frozen=True)
class Measure:
    """One measure: how a round of it goes, and how it is told."""

    name: str
    title: str
    text: str
    """What is measured and how, in Markdown."""
    columns: Sequence[Column]
    once: Callable[[Bench, System], Figures]
    """One round with one system; raises `scripts.peers.trial.Stalled` where it comes to no end."""
    rounds: int = 1
    round_s: float = 12.0
    """About how long a round of one system takes, for telling the time that is left."""
    full: bool = False
    """Whether it takes ``FULL=1``."""
    ours_only: bool = False
    stores: Sequence[str] = ("postgres", "redis", "sqlite")


def median(rounds: Sequence[Figures], key: str) -> float | None:
    """The median of a number over the rounds that have it."""
    values = numbers(rounds, key)
    return statistics.median(values) if values else None


def numbers(rounds: Sequence[Figures], key: str) -> list[float]:
    """The values of a number in the rounds that have it."""
    return [float(one[key]) for one in rounds if isinstance(one.get(key), int | float)]
