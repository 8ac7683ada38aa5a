"""Lays out what the demo shows at its end. Pure: the facts of a run in, something rich can print out."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from runwick import Usage

RANKED = 8
"""Modules in the first table."""


@dataclasses.dataclass(frozen=True)
class Examined:
    """One module whose job succeeded: what the handler returned and what its last attempt cost."""

    path: str
    measures: dict[str, Any]
    usage: Usage | None


@dataclasses.dataclass(frozen=True)
class Costly:
    """One attempt among the costliest."""

    path: str
    job_id: str
    usage: Usage


@dataclasses.dataclass(frozen=True)
class Kept:
    """Where the jobs of the run are kept."""

    store: str
    """As a sentence names it: ``the SQLite file``."""
    server: tuple[int, float] | None = None
    """Process id of the server that was started for the run, and its CPU time in seconds."""
    bring_back: str = ""
    """The program that brings that server back for one command."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """Everything one run came to."""

    python: str
    """Which library was examined, such as ``CPython 3.11.7``."""
    cores: int
    summary: dict[str, Any]
    """The last line of ``runwick-supervise --log-format json``."""
    examined: Sequence[Examined]
    supervisor: int
    """Its process id."""
    most_cpu: Sequence[Costly]
    most_memory: Sequence[Costly]
    application: str
    """The module to name after ``--app``."""
    kept: Kept


def report(facts: Facts) -> RenderableType:
    """The whole report, top to bottom."""
    return Group(
        _ranking(facts.examined),
        _totals(facts),
        Text(),
        _costs("The attempts that cost most CPU", facts.most_cpu),
        Text(),
        _costs("The attempts that cost most memory", facts.most_memory),
        Text(),
        _places(facts),
        Text(),
        _summary(facts),
    )


def command_for_more(facts: Facts) -> str:
    """The command that shows more about the job that cost most, or about any where costs are not recorded."""
    job_id = facts.most_cpu[0].job_id if facts.most_cpu else "JOB_ID"
    return _command(facts, f"jobs get {job_id}")


def command_for_dashboard(facts: Facts) -> str:
    """The command that serves the dashboard on the store of the run, and prints a link that signs in once."""
    return _command(facts, "web")


def module_name(path: str) -> str:
    """A module as it is imported, which is shorter than its path: ``test.test_typing``."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _command(facts: Facts, what: str) -> str:
    return f"{facts.kept.bring_back} .venv/bin/runwick {what} --app {facts.application}".lstrip()


def _ranking(examined: Sequence[Examined]) -> Table:
    table = _table("The most complex modules", "module", "lines", "functions", "branches")
    table.add_column("most complex function", no_wrap=True)
    parsed = [module for module in examined if module.measures["parsed"]]
    for module in sorted(parsed, key=lambda module: module.measures["branches"], reverse=True)[:RANKED]:
        measures = module.measures
        figures = [f"{measures[name]:,}" for name in ("lines", "functions", "branches")]
        hardest = measures["most_complex"]
        table.add_row(
            module_name(module.path), *figures, f"{hardest['name']} ({hardest['complexity']})" if hardest else ""
        )
    return table


def _totals(facts: Facts) -> Text:
    parsed = [module.measures for module in facts.examined if module.measures["parsed"]]
    sums = {name: sum(measures[name] for measures in parsed) for name in ("lines", "functions", "classes", "branches")}
    counts = ", ".join(f"{number:,} {name}" for name, number in sums.items())
    text = f"All of {facts.python}: {len(parsed):,} modules with {counts}"
    if unparsed := len(facts.examined) - len(parsed):
        text += f"; {unparsed:,} more {'does' if unparsed == 1 else 'do'} not parse"
    return Text(f"{text}.")


def _costs(title: str, runs: Sequence[Costly]) -> Table:
    table = _table(title, "module", "cpu", "wall", "peak")
    table.add_column("job", no_wrap=True)
    for run in runs:
        usage = run.usage
        figures = (_seconds(usage.cpu_us), _seconds(usage.wall_us), _mebibytes(usage.rss_peak_bytes))
        table.add_row(module_name(run.path), *figures, run.job_id)
    return table


def _places(facts: Facts) -> Table:
    """Which process did what; the executors are known from the results that their handlers returned."""
    table = _table("Where it ran", "process", "modules", "cpu")
    table.add_column("what it did")
    executors: dict[int, list[Examined]] = {}
    for module in facts.examined:
        executors.setdefault(module.measures["process"], []).append(module)
    for process, modules in sorted(executors.items()):
        cpu_us = sum(module.usage.cpu_us or 0 for module in modules if module.usage is not None)
        table.add_row(f"executor {process}", f"{len(modules):,}", _seconds(cpu_us), "called the handler, nothing else")
    cpu_us = round(facts.summary["supervisor_cpu_s"] * 1e6)
    table.add_row(f"supervisor {facts.supervisor}", "", _seconds(cpu_us), f"claimed and settled in {facts.kept.store}")
    if facts.kept.server is not None:
        process, server_cpu_s = facts.kept.server
        table.add_row(f"{facts.kept.store} {process}", "", _seconds(round(server_cpu_s * 1e6)), "kept the jobs")
    return table


def _summary(facts: Facts) -> Text:
    summary = facts.summary
    text = Text()
    rate = summary["done"] / summary["elapsed_s"] if summary["elapsed_s"] else 0.0
    text.append(f"{summary['done']:,} jobs in {summary['elapsed_s']:.1f} s: {rate:,.0f} jobs/s, ", "bold")
    text.append(f"{100 * summary['share_in_handlers']:.1f} % of {_cores(facts.cores)} in handlers.\n", "bold")
    if summary["failed"] or summary["retried"]:
        text.append(f"{summary['failed']:,} failed, {summary['retried']:,} tries were repeated.\n", "red")
    text.append("More about one of these jobs:")
    return text


def _table(title: str, first: str, *figures: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, overflow="ellipsis")  # the one that gives way on a narrow terminal
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cores(number: int) -> str:
    return {1: "the core", 2: "both cores"}.get(number, f"all {number} cores")


def _seconds(microseconds: int | None) -> str:
    """A duration, or a dash where it was not measured."""
    return "–" if microseconds is None else f"{microseconds / 1e6:.2f} s"


def _mebibytes(size_bytes: int | None) -> str:
    return "–" if size_bytes is None else f"{size_bytes / 2**20:.0f} MiB"
