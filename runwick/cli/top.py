"""``runwick top``: executors at work, again and again at a terminal, once elsewhere."""

import importlib.util
import sys
from typing import TYPE_CHECKING

import click

from runwick.cli.commands import DeskCommand
from runwick.cli.moments import DURATION

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.cli.results import TopBody


@click.command(cls=DeskCommand, permission="Capacity.Read", result="TopBody")
@click.option("--every", "every_ms", type=DURATION, default="2s", show_default=True, help="How often to look.")
@click.option("--once", is_flag=True, help="Look once, also at a terminal.")
async def command(operation: "Operation", every_ms: int, once: bool) -> "Answer":
    """Watch executors at work.

    It looks again and again at a terminal, where the extra 'rich' is installed, until Ctrl-C; otherwise once. It needs
    Jobs.Read too, for the figures and for what runs.
    """
    from runwick.cli.answers import Answer
    from runwick.cli.modes import Mode

    if every_ms < 500:
        raise click.UsageError("--every is at least 500ms.")
    is_live = operation.mode is Mode.PEOPLE and sys.stdout.isatty() and importlib.util.find_spec("rich") is not None
    if is_live and not once:
        await _watch(operation, every_ms / 1_000)
    found = await _look(operation)
    return Answer(body=found, text=lambda: _text(found))


async def _look(operation: "Operation") -> "TopBody":
    import asyncio

    import msgspec

    from runwick.cli.results import TopBody

    overview, workers = await asyncio.gather(operation.desk.overview(), operation.desk.workers())
    alive = tuple(each for each in workers.workers if each.alive)
    return TopBody(overview=overview, workers=msgspec.structs.replace(workers, workers=alive))


async def _watch(operation: "Operation", every_s: float) -> None:
    """Until Ctrl-C. What cannot be read for a while leaves the last picture, with a line that says so."""
    import asyncio

    from rich.live import Live

    from runwick.cli.top_view import picture, without_answer
    from runwick.contracts.errors import RunwickError

    last = picture(await _look(operation))
    with Live(last, screen=True, auto_refresh=False) as live:
        while True:
            await asyncio.sleep(every_s)
            try:
                last = picture(await _look(operation))
                live.update(last, refresh=True)
            except RunwickError as error:
                live.update(without_answer(last, error), refresh=True)


def _text(found: "TopBody") -> str:
    from runwick.cli.executor_text import headline, lay_out_workers

    return f"{headline(found.overview)}\n{lay_out_workers(found.workers)}"
