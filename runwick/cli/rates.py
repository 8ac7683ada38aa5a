"""``runwick rates``: limits of how many jobs begin within a time."""

from typing import TYPE_CHECKING

import click

from runwick.cli.capacity import KINDS
from runwick.cli.commands import DeskCommand, Topic
from runwick.cli.pages import more_text, next_page, page_options

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import RateListBody


@click.group(cls=Topic)
def command() -> None:
    """List limits of how many jobs begin within a time."""


@command.command("list", cls=DeskCommand, permission="Capacity.Read", result="RateListBody")
@click.option("--kind", type=click.Choice(KINDS), help="Only those of this kind.")
@page_options
async def list_(operation: "Operation", kind: str | None, cursor: str | None, limit: int) -> "Answer":
    """List rate windows with how much of each is taken."""
    from runwick.cli.answers import Answer
    from runwick.contracts.limits import LimitKind

    page = await operation.desk.rates(None if kind is None else LimitKind(kind), cursor, limit)
    return Answer(
        body=page,
        text=lambda: _table(page) + more_text(page.cursor),
        next_actions=next_page(operation, page.cursor),
    )


def _table(page: "RateListBody") -> str:
    from runwick.cli.tables import lay_out_table
    from runwick.management.amounts import elapsed

    if not page.rates:
        return "no rate windows"
    rows = [
        [
            each.kind,
            each.key,
            f"{each.max_executions:,} in {elapsed(each.window_ms * 1_000)}",
            f"{each.in_window:,}",
            "yes" if each.waiting else None,
        ]
        for each in page.rates
    ]
    return lay_out_table(["kind", "key", "limit", "begun", "waiting"], rows, indent="")
