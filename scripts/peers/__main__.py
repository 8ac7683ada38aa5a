"""``python -m scripts.peers``: measure Runwick and the others in turn, and write what came out as a page.

Progress goes to standard error. Only an idle machine gives figures worth keeping.
"""

import math
import os
import signal
from pathlib import Path

import click

from scripts.bench import BUSY_LOAD
from scripts.peers.grounds import Grounds
from scripts.peers.measure import Bench
from scripts.peers.measures import every_measure
from scripts.peers.pages import write
from scripts.peers.system import PROJECT
from scripts.peers.systems import every_system
from scripts.peers.tree import adopt_orphans
from scripts.peers.turns import take

PAGE = PROJECT / "docs" / "benchmarks"
MINUTES = 28.0
"""Of a run that is not full, the making of environments not counted."""

_SYSTEMS = {system.name: system for system in every_system()}
_MEASURES = {measure.name: measure for measure in every_measure()}


@click.command(context_settings={"max_content_width": 100})
@click.option("--full", is_flag=True, help="Take every measure, however long that takes.")
@click.option("--quick", is_flag=True, help="Only see whether everything runs: tiny counts, one round.")
@click.option(
    "--system", "systems", type=click.Choice(list(_SYSTEMS)), multiple=True, help="This one alone; repeatable."
)
@click.option(
    "--measure", "measures", type=click.Choice(list(_MEASURES)), multiple=True, help="This one alone; repeatable."
)
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each measure, instead of its own number.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help=f"Rounds that would end later are left out. [default: {MINUTES:g}, with --full none]",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the page goes. [default: docs/benchmarks; for a run that is quick or in part, .runwick/peers]",
)
@click.option(
    "--dir",
    "place",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".runwick"),
    help="Where temporary files go; a real disk. [default: .runwick]",
)
def main(
    full: bool,
    quick: bool,
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    rounds: int | None,
    minutes: float | None,
    folder: Path | None,
    place: Path,
) -> None:
    """Measure Runwick beside other job systems, in turn, on the same servers with the same durability."""
    os.environ.pop("RUNWICK_STORE", None)  # a measurement never touches anybody's store
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever ends it, its workers end as well
    adopt_orphans()
    if os.getloadavg()[0] > BUSY_LOAD:
        click.echo(f"note: load average is {os.getloadavg()[0]:.1f}; others are computing", err=True)
    place.mkdir(parents=True, exist_ok=True)
    chosen = [_MEASURES[name] for name in measures] or [
        measure for measure in _MEASURES.values() if full or not measure.full
    ]
    taking_part = [_SYSTEMS[name] for name in systems] or list(_SYSTEMS.values())
    budget_s = 60 * (minutes or (math.inf if full else MINUTES))
    with Grounds(place.absolute()) as grounds:
        bench = Bench(grounds, full=full, quick=quick, say=lambda text: click.echo(text, err=True))
        results = take(bench, taking_part, chosen, 1 if quick else rounds, budget_s)
        in_part = bool(quick or systems or measures)
        target = folder or (Path(".runwick") / "peers" if in_part else PAGE)
        page = write(results, grounds.told(), target, quick=quick)
    click.echo(f"written: {page}")


if __name__ == "__main__":
    main()
