"""``runwick overview``: what is wrong first, then figures."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import DeskCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import OverviewBody


@click.command(cls=DeskCommand, permission="Jobs.Read", result="OverviewBody")
async def command(operation: "Operation") -> "Answer":
    """Show what is wrong first, then figures."""
    from runwick.cli.answers import Answer

    found = await operation.desk.overview()
    return Answer(body=found, text=lambda: _text(found))


def _text(found: "OverviewBody") -> str:
    from runwick.cli.executor_text import headline
    from runwick.cli.tables import painted, terminal_text

    lines = [f"{painted(each.severity)}  {each.code}  {terminal_text(each.text)}" for each in found.troubles]
    minutes = len(found.ended.values) * found.ended.step_ms / 60_000
    at_least = "at least " if found.ended.is_sampled else ""
    lines += [
        headline(found),
        f"{at_least}{sum(found.ended.values):,} runs ended within {minutes:g} min, {sum(found.failed.values):,} failed",
    ]
    if found.admission != "open":
        lines.append(f"admission: {found.admission}")
    return "\n".join(lines if found.troubles else ["nothing is wrong", *lines])
