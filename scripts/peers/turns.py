"""The order of the run: every measure, round by round, all systems in turn in each round, so that all of them meet the
same moods of the machine. A system that fails has a row that says so, and the run goes on.
"""

import dataclasses
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import psutil
import psycopg
import redis

from scripts.peers import environments
from scripts.peers.measure import Bench, Figures, Measure
from scripts.peers.system import OurSystem, System
from scripts.peers.trial import Stalled

FAILURES: Final = (
    Stalled,
    OSError,
    AssertionError,
    ValueError,
    RuntimeError,
    subprocess.SubprocessError,
    psutil.Error,
    psycopg.Error,
    redis.RedisError,
    click.ClickException,
)
"""What a system that cannot be measured may raise; whatever else comes is a fault of the harness."""


@dataclasses.dataclass
class Results:
    """All that was measured."""

    systems: Sequence[System]
    measures: Sequence[Measure]
    rounds: dict[str, dict[str, list[Figures]]]
    """By measure and system, every round."""
    missing: Mapping[str, str]
    """Systems that could not be installed, with the reason."""
    seconds: dict[str, float]
    """How long each measure took."""
    cut: list[str]
    """What was left out for want of time, in words."""

    def of(self, measure: str, system: str) -> list[Figures]:
        """The rounds of one system in one measure that came to something."""
        return [one for one in self.rounds.get(measure, {}).get(system, []) if "problem" not in one]

    def problem(self, measure: Measure, system: System) -> str:
        """Why a system has no figures in a measure; empty if it has."""
        if self.of(measure.name, system.name):
            return ""
        if system.name in self.missing:
            return self.missing[system.name]
        rounds = self.rounds.get(measure.name, {}).get(system.name, [])
        return str(rounds[-1]["problem"]) if rounds else "not measured"


def installed(systems: Sequence[System], bench: Bench) -> dict[str, str]:
    """Make every environment; answers why those are missing that could not be made."""
    missing: dict[str, str] = {}
    for system in systems:
        bench.say(f"environment of {system.name} {environments.version(system)}")
        try:
            environments.make(system)
        except environments.NotHere as reason:
            bench.say(f"  {system.name} {reason}")
            missing[system.name] = str(reason)
    return missing


def take(
    bench: Bench, systems: Sequence[System], measures: Sequence[Measure], rounds: int | None, budget_s: float
) -> Results:
    """Take every measure.

    Args:
        bench: what they have to work with.
        systems: who takes part.
        measures: what is measured.
        rounds: of each measure, instead of its own number.
        budget_s: a round after the first one is left out where it would end later.
    """
    missing = installed(systems, bench)
    results = Results(systems, measures, {}, missing, {}, [])
    plan = _Plan(results, rounds, time.monotonic() + budget_s)
    for measure in measures:
        started_s = time.monotonic()
        for number in range(plan.rounds(measure)):
            if number and not plan.fits(measure):
                results.cut.append(f"{measure.title}: {number} of {plan.rounds(measure)} rounds, for want of time")
                break
            for system in plan.takers(measure):
                _round(bench, results, plan, measure, system, number)
        results.seconds[measure.name] = time.monotonic() - started_s
    for name, seconds in results.seconds.items():
        bench.say(f"{name}: {seconds:.0f} s")
    return results


def _round(bench: Bench, results: Results, plan: "_Plan", measure: Measure, system: System, number: int) -> None:
    rounds = results.rounds.setdefault(measure.name, {}).setdefault(system.name, [])
    if reason := system.cannot.get(measure.name):
        rounds.append({"problem": reason})
        return
    if any("problem" in one for one in rounds):
        return  # it would only take its time again
    started_s = time.monotonic()
    try:
        rounds.append(measure.once(bench, system))
    except FAILURES as failure:
        rounds.append({"problem": f"could not be measured: {_words(failure)}"})
    plan.took(measure, system, time.monotonic() - started_s)
    told = f"{measure.name} {number + 1}/{plan.rounds(measure)} {system.name}: {_brief(measure, rounds[-1])}"
    bench.say(f"[about {plan.left_s() / 60:.0f} min left] {told} ({time.monotonic() - started_s:.1f} s)")


class _Plan:
    """What is still to do, and about how long it takes."""

    def __init__(self, results: Results, rounds: int | None, until_s: float) -> None:
        self._results = results
        self._rounds = rounds
        self._until_s = until_s
        self._todo = [(measure, system) for measure in results.measures for system in self._all_rounds(measure)]
        self._taken: dict[tuple[str, str], float] = {}

    def rounds(self, measure: Measure) -> int:
        """How many rounds it has."""
        return self._rounds or measure.rounds

    def takers(self, measure: Measure) -> list[System]:
        """Who takes part."""
        return [
            system
            for system in self._results.systems
            if system.name not in self._results.missing
            and system.store in measure.stores
            and (isinstance(system, OurSystem) or not measure.ours_only)
        ]

    def took(self, measure: Measure, system: System, seconds: float) -> None:
        """Take note of how long a round took."""
        self._taken[measure.name, system.name] = seconds
        if (measure, system) in self._todo:
            self._todo.remove((measure, system))

    def fits(self, measure: Measure) -> bool:
        """Whether another round ends in time."""
        round_s = sum(self._about_s(measure, system) for system in self.takers(measure))
        return time.monotonic() + round_s < self._until_s

    def left_s(self) -> float:
        """About how long the rest takes."""
        return sum(self._about_s(measure, system) for measure, system in self._todo)

    def _all_rounds(self, measure: Measure) -> Iterator[System]:
        for _ in range(self.rounds(measure)):
            yield from self.takers(measure)

    def _about_s(self, measure: Measure, system: System) -> float:
        return self._taken.get((measure.name, system.name), measure.round_s)


def _words(failure: BaseException) -> str:
    text = " ".join(str(failure).split())
    return text[:300] or type(failure).__name__


def _brief(measure: Measure, figures: Figures) -> str:
    if "problem" in figures:
        return str(figures["problem"])
    shown: list[Any] = [(column.head, figures.get(column.key)) for column in measure.columns[:3]]
    return ", ".join(f"{head} {value}" for head, value in shown if value is not None)
