"""``runwick types``: what the jobs of each type cost, and what that suggests."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import DeskCommand, Topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import DistributionBody, TypeBody, TypeDetailBody, TypeListBody


@click.group(cls=Topic)
def command() -> None:
    """Show what the jobs of each type cost."""


@command.command("list", cls=DeskCommand, permission="Jobs.Read", result="TypeListBody")
async def list_(operation: "Operation") -> "Answer":
    """List job types with figures of their last runs."""
    from runwick.cli.answers import Answer

    found = await operation.desk.types()
    return Answer(body=found, text=lambda: _table(found))


@command.command(cls=DeskCommand, permission="Jobs.Read", result="TypeDetailBody")
@click.argument("name", metavar="TYPE")
async def get(operation: "Operation", name: str) -> "Answer":
    """Show one job type: figures, failures, and advice."""
    from runwick.cli.answers import Answer

    found = await operation.desk.type(name)
    return Answer(body=found, text=lambda: _text(found))


def _table(found: "TypeListBody") -> str:
    from runwick.cli.tables import lay_out_table

    if not found.types:
        return "no job types"
    rows = [
        [
            each.name,
            f"{each.runs:,}",
            f"{each.failed:,}",
            *(_median_and_most(each)),
        ]
        for each in found.types
    ]
    header = ["type", "runs", "failed", "wall median", "99 %", "peak memory median", "99 %"]
    return lay_out_table(header, rows, indent="")


def _median_and_most(each: "TypeBody") -> list[str | None]:
    from runwick.management.amounts import elapsed, size

    wall, memory = each.wall_us, each.rss_peak_bytes
    return [
        None if wall is None else elapsed(wall.p50),
        None if wall is None else elapsed(wall.p99),
        None if memory is None else size(memory.p50),
        None if memory is None else size(memory.p99),
    ]


def _text(found: "TypeDetailBody") -> str:
    from runwick.cli.tables import lay_out_table
    from runwick.management.amounts import elapsed, size

    lines = [f"type {found.name}  {found.runs:,} runs  {found.failed:,} failed"]
    lines += [f"  {count:,} × {code}" for code, count in found.codes.items()]
    figures: tuple[tuple[str, DistributionBody | None, Callable[[int], str]], ...] = (
        ("wall", found.wall_us, elapsed),
        ("cpu", found.cpu_us, elapsed),
        ("peak memory", found.rss_peak_bytes, size),
        ("allocated", found.allocated_bytes, size),
    )
    rows = [
        [name, *map(shown, (spread.minimum, spread.p50, spread.p90, spread.p99, spread.maximum))]
        for name, spread, shown in figures
        if spread is not None
    ]
    if rows:
        lines.append(lay_out_table(["", "least", "median", "90 %", "99 %", "most"], rows))
    lines += [f"  advice: {each.text}" for each in found.advice]
    if found.limiting is not None:
        lines.append(f"  now: {found.limiting.text}")
    return "\n".join(lines)
