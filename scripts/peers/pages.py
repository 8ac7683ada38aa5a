"""What came out, as a page for people, JSON for machines, and plots; nobody writes these files by hand."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from scripts.peers import environments
from scripts.peers.comparing import beaten_by, times
from scripts.peers.goals import GOALS
from scripts.peers.measure import Column, Figures, Measure, median, numbers
from scripts.peers.measures import every_measure
from scripts.peers.plots import Bar, bars
from scripts.peers.surroundings import lines_of, surroundings_of
from scripts.peers.system import WORKERS, OurSystem, System
from scripts.peers.turns import Results

PLOTS: Final = {
    "noop": ("No-op jobs per second", ("jobs_per_s",), False),
    "cpu-5ms": ("Share of both cores in handlers, jobs of 5 ms, in per cent", ("share",), False),
    "latency": (
        "Dispatch to start on an idle worker, ms: p50, p95, p99 (logarithmic)",
        ("p50_ms", "p95_ms", "p99_ms"),
        True,
    ),
}
"""Measures that are drawn: title, figures, whether on a logarithmic scale."""
_NONE: Final = "–"


def write(results: Results, servers: Mapping[str, Any], folder: Path, *, quick: bool) -> Path:
    """Write ``README.md``, ``results.json`` and the plots; answers the page's path.

    Args:
        results: what was measured.
        servers: version and settings of each server.
        folder: where to; made if it is not there.
        quick: whether this was only a try, which the page then says.
    """
    folder.mkdir(parents=True, exist_ok=True)
    surroundings = surroundings_of(servers)
    plots = {name: text for name in PLOTS if (text := _plot(results, name))}
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, text in plots.items():
        (folder / f"{name}.svg").write_text(text)
    (folder / "results.json").write_text(json.dumps(_as_json(results, surroundings), indent=2) + "\n")
    page = folder / "README.md"
    page.write_text("\n".join(_page(results, surroundings, list(plots), quick)) + "\n")
    return page


def _page(results: Results, surroundings: Mapping[str, Any], plots: Sequence[str], quick: bool) -> list[str]:
    lines = ["# Runwick beside other job systems", ""]
    if quick:
        lines += ["**This run only tried whether everything runs; its figures mean nothing.**", ""]
    lines += [
        "Written by `make bench-peers`, which does it again on any machine: it installs every system into an "
        "environment of its own and measures all of them in turn, in the same run, on the same servers with the same "
        "durability, with the settings below. Everybody's handlers count on the same board in shared memory; the "
        "harness reads it. Figures are medians over the rounds, in brackets the least and the greatest; *×* is ours on "
        f"the same store as a multiple of the row's. Everybody has {WORKERS} worker processes.",
        "",
        *lines_of(surroundings),
        "",
        *_goal_lines(results),
    ]
    for measure in results.measures:
        lines += _measure_lines(results, measure, measure.name in plots)
    return [*lines, *_settings_lines(results), *_missing_lines(results), *_time_lines(results)]


def _measure_lines(results: Results, measure: Measure, drawn: bool) -> list[str]:
    lines = [f"## {measure.title}", "", measure.text, ""]
    if drawn:
        lines += [f"![{measure.title}]({measure.name}.svg)", ""]
    taking_part = [
        system
        for system in results.systems
        if system.store in measure.stores and (isinstance(system, OurSystem) or not measure.ours_only)
    ]
    columns = [
        column
        for column in measure.columns
        if any(column.key in one for system in taking_part for one in results.of(measure.name, system.name))
    ] or list(measure.columns)
    heads = [head for column in columns for head in (column.head, *(["×"] if column.compared else []))]
    lines += [f"| | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    problems = []
    for system in taking_part:
        if problem := results.problem(measure, system):
            problems.append(f"* {system.title}: {problem}.")
            lines.append(f"| {_name(system)} |{f' {_NONE} |' * len(heads)}")
            continue
        rounds = results.of(measure.name, system.name)
        cells = [cell for column in columns for cell in _cells(results, measure, system, column, rounds)]
        lines.append(f"| {_name(system)} | {' | '.join(cells)} |")
    lines.append("")
    if problems:
        lines += ["Not measured:", "", *problems, ""]
    if beaten := beaten_by(results, measure):
        lines += ["Where another system does better than Runwick on the same store:", "", *beaten, ""]
    elif any(column.compared for column in columns) and any(not isinstance(one, OurSystem) for one in taking_part):
        lines += ["No other system does better here than Runwick on the same store.", ""]
    return lines


def _cells(results: Results, measure: Measure, system: System, column: Column, rounds: Sequence[Figures]) -> list[str]:
    if texts := [one[column.key] for one in rounds if isinstance(one.get(column.key), str)]:
        return ["; ".join(dict.fromkeys(texts))]
    shown = _number(rounds, column)
    if not column.compared:
        return [shown]
    multiple = times(results, measure, system, column)
    return [shown, f"{multiple:.2f}" if multiple is not None else _NONE]


def _number(rounds: Sequence[Figures], column: Column) -> str:
    values = numbers(rounds, column.key)
    if not values:
        return _NONE
    shown = f"{statistics.median(values):,.{column.digits}f}"
    low, high = (f"{value:,.{column.digits}f}" for value in (min(values), max(values)))
    return f"{shown} ({low} to {high})" if low != high else shown


def _goal_lines(results: Results) -> list[str]:
    lines = ["## Goals", "", "| goal | to be reached | aim | this run | |", "|---|---|---|---|---|"]
    for goal in GOALS:
        value, sign = goal.value(results), "≥" if goal.at_least else "≤"
        shown = _NONE if value is None else f"{value:.{goal.digits}f}"
        verdict = "not measured" if value is None else "met" if goal.is_met(value) else "**missed**"
        lines.append(f"| {goal.text} | {sign} {goal.first:g} | {sign} {goal.aim:g} | {shown} | {verdict} |")
    return [*lines, ""]


def _settings_lines(results: Results) -> list[str]:
    lines = [
        "## Who takes part, and how each is set",
        "",
        "| | version | store | promise | settings |",
        "|---|---|---|---|---|",
    ]
    for system in results.systems:
        version = environments.version(system)
        lines.append(f"| {_name(system)} | {version} | {system.store} | {system.promise} | {system.settings} |")
    return [*lines, ""]


def _missing_lines(results: Results) -> list[str]:
    taken = {measure.name for measure in results.measures}
    left_out = [measure for measure in every_measure() if measure.name not in taken]
    lines = [f"* {results_of}." for results_of in results.cut]
    lines += [f"* {name} {reason}." for name, reason in results.missing.items()]
    for full, when in ((False, "Not taken in this run"), (True, "Taken only with `make bench-peers FULL=1`")):
        if titles := [measure.title for measure in left_out if measure.full is full]:
            lines.append(f"* {when}: {'; '.join(titles)}.")
    return ["## What was not measured", "", *lines, ""] if lines else []


def _time_lines(results: Results) -> list[str]:
    told = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in results.seconds.items())
    return [f"Time that each measure took: {told}."]


def _as_json(results: Results, surroundings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **surroundings,
        "worker_processes": WORKERS,
        "systems": {
            system.name: {
                "title": system.title,
                "version": environments.version(system),
                "store": system.store,
                "promise": system.promise,
                "settings": system.settings,
            }
            for system in results.systems
        },
        "measures": {
            measure.name: {
                "title": measure.title,
                "seconds": round(results.seconds[measure.name], 1),
                "systems": _measure_json(results, measure),
            }
            for measure in results.measures
        },
        "goals": [
            {"goal": goal.text, "first": goal.first, "aim": goal.aim, "value": goal.value(results)} for goal in GOALS
        ],
        "not_measured": {"systems": dict(results.missing), "rounds": results.cut},
    }


def _measure_json(results: Results, measure: Measure) -> dict[str, Any]:
    """Every round of every system, and the ratios to ours."""
    told = {}
    for system in results.systems:
        rounds = results.rounds.get(measure.name, {}).get(system.name, [])
        if rounds:
            ratios = {
                column.key: times(results, measure, system, column) for column in measure.columns if column.compared
            }
            told[system.name] = {"rounds": [dict(one) for one in rounds], "ours_times": ratios}
    return told


def _plot(results: Results, name: str) -> str:
    """The drawing of a measure; empty if there is nothing to draw."""
    title, keys, logarithmic = PLOTS[name]
    rows = []
    for system in results.systems:
        rounds = results.of(name, system.name)
        values = [value for key in keys if (value := median(rounds, key)) is not None]
        if values:
            text = " / ".join(f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values)
            rows.append(Bar(system.title, values, text, isinstance(system, OurSystem)))
    return bars(title, rows, logarithmic=logarithmic) if rows else ""


def _name(system: System) -> str:
    return f"**{system.title}**" if isinstance(system, OurSystem) else system.title
