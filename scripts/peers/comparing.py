"""Ours beside theirs: on the same store, in the same run."""

from scripts.peers.goals import OURS
from scripts.peers.measure import Column, Measure, median
from scripts.peers.system import OurSystem, System
from scripts.peers.turns import Results


def times(results: Results, measure: Measure, system: System, column: Column) -> float | None:
    """Ours on the system's store as a multiple of its figure; None where one of the two is missing or zero."""
    ours = median(results.of(measure.name, OURS[system.store]), column.key)
    theirs = median(results.of(measure.name, system.name), column.key)
    return round(ours / theirs, 4) if ours is not None and theirs else None


def beaten_by(results: Results, measure: Measure) -> list[str]:
    """Every system that does better than ours on its store, in words, as a line of a list."""
    lines = []
    for column in measure.columns:
        for system in results.systems:
            if not column.compared or isinstance(system, OurSystem):
                continue
            multiple = times(results, measure, system, column)
            if multiple is None or (multiple >= 1 if column.compared == "more" else multiple <= 1):
                continue
            better = 1 / multiple if column.compared == "more" else multiple
            promise = f", which promises {system.promise}" if system.promise != "at least once" else ""
            lines.append(f"* {column.head}: {system.title}{promise}, {better:.2f} times better.")
    return lines
