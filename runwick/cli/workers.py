"""``runwick workers``: who runs jobs, and what each executor does."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import DeskCommand, Topic

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation


@click.group(cls=Topic)
def command() -> None:
    """List workers and what their executors do."""


@command.command("list", cls=DeskCommand, permission="Capacity.Read", result="WorkerListBody")
@click.option("--include-expired", is_flag=True, help="Also those of the last 24 hours that are gone.")
async def list_(operation: "Operation", include_expired: bool) -> "Answer":
    """List living workers, the latest start first."""
    import msgspec

    from runwick.cli.answers import Answer
    from runwick.cli.executor_text import lay_out_workers

    found = await operation.desk.workers()
    if not include_expired:
        found = msgspec.structs.replace(found, workers=tuple(each for each in found.workers if each.alive))
    return Answer(body=found, text=lambda: lay_out_workers(found))
