"""``python -m scripts.bench``: what the project promises, measured on this machine.

Progress goes to standard error and the answer to standard output, as a table for people or as JSON. Only an idle
machine gives figures worth keeping.
"""

import importlib
import json
import os
import signal
from pathlib import Path

import click

from scripts.benchmarks.claim import NAMES
from scripts.benchmarks.figures import Assignment, Report
from scripts.benchmarks.sites import STORES, opened_site

BENCHMARKS = ("noop", "cpu", "latency", "dispatch", "claim", "rate", "recover", "lists", "executors")
BUSY_LOAD = 0.5
"""Above this load average (one minute) somebody else is computing."""


@click.command(context_settings={"max_content_width": 100})
@click.argument("benchmark", type=click.Choice([*BENCHMARKS, "all"]))
@click.option("--store", type=click.Choice(STORES), default="sqlite", show_default=True)
@click.option("--shape", type=click.Choice(NAMES), help="Measure 'claim' with this one alone.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; an array for 'all'.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of jobs, instead of each benchmark's own.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="How long one measurement of 'cpu' takes.",
)
@click.option(
    "--work-ms", type=click.FloatRange(min=0.01), default=5.0, show_default=True, help="CPU time of one job of 'cpu'."
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Measurements of each; the median counts.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where temporary files go; a real disk. [default: below .runwick here]",
)
def main(
    benchmark: str,
    store: str,
    shape: str | None,
    as_json: bool,
    jobs: int | None,
    seconds: float,
    work_ms: float,
    rounds: int,
    folder: Path | None,
) -> None:
    """Measure BENCHMARK and print what came out, with what each figure means.

    \b
    noop      jobs that do nothing, beside the store's own claim and settle acts
    cpu       the share of the cores that reaches the handlers, beside raw forks without a store
    latency   from a dispatch in another process to the start, on an idle worker and 3 ms apart
    dispatch  dispatches of one producer, of eight, and next to a busy worker
    claim     claims beside those from a small store: from a large one (shape pending or finished), beside
              jobs that are blocked by a scope or undecodable, with a transaction held open; and what a
              claim of scoped jobs costs
    rate      a limit of 24 per second over 100,000 waiting jobs, for a minute
    recover   an expired lease among a million rows; executors and supervisors that were killed
    lists     a page of jobs for every kind of filter, of a million jobs
    executors  respawn and memory with numpy and pandas imported; what threads, cores and niceness are worth
    """
    if shape and benchmark != "claim":
        raise click.UsageError(f"--shape goes with 'claim', not with '{benchmark}'.")
    os.environ.pop("RUNWICK_STORE", None)  # a measurement never touches anybody's store
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever ends it, its supervisor ends as well
    if os.getloadavg()[0] > BUSY_LOAD:
        click.echo(
            f"note: load average is {os.getloadavg()[0]:.1f}; others are computing, figures will be low", err=True
        )
    place = folder or Path(".runwick")
    place.mkdir(parents=True, exist_ok=True)
    names = BENCHMARKS if benchmark == "all" else (benchmark,)
    with opened_site(store, place.absolute()) as site:
        assignment = Assignment(
            store=store,
            site=site,
            jobs=jobs,
            seconds=seconds,
            work_ms=work_ms,
            rounds=rounds,
            shape=shape,
            say=lambda text: click.echo(text, err=True),
        )
        reports = [_measured(name, assignment, quiet=as_json) for name in names]
    if as_json:
        answers = [report.as_json(assignment) for report in reports]
        click.echo(json.dumps(answers if benchmark == "all" else answers[0], indent=2))


def _measured(name: str, assignment: Assignment, *, quiet: bool) -> Report:
    report: Report = importlib.import_module(f"scripts.benchmarks.{name}").run(assignment)
    if not quiet:
        click.echo(report.as_text())
        click.echo()
    return report


if __name__ == "__main__":
    main()
