"""``runwick queues``: how far behind they are, and whether anything is claimed from them."""

from typing import TYPE_CHECKING, Final

import click

from runwick.cli.commands import DeskCommand, Topic

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import QueueListBody, SteerBody

COUNTED_MAX: Final = 10_000
READ: Final = ("queues list",)


@click.group(cls=Topic)
def command() -> None:
    """List queues, pause and resume them."""


@command.command("list", cls=DeskCommand, permission="Queues.Read", result="QueueListBody")
async def list_(operation: "Operation") -> "Answer":
    """List all queues with what waits in them."""
    from runwick.cli.answers import Answer
    from runwick.cli.targets import queue_revisions

    found = await operation.desk.queues()
    return Answer(body=found, text=lambda: _table(found), revisions=queue_revisions(*found.queues))


@command.command(
    cls=DeskCommand,
    permission="Queues.Control",
    result="SteerBody",
    changes=True,
    expected=("revision",),
    read_by=READ,
    target="queue:{queue}",
)
@click.argument("queue", metavar="QUEUE")
async def pause(operation: "Operation", queue: str) -> "Answer":
    """Claim nothing more from a queue. What runs goes on, and dispatches are taken."""
    from runwick.cli.targets import queue_revision

    revision = await queue_revision(operation, queue)
    return _steered(queue, await operation.desk.pause(queue, revision, operation.change))


@command.command(
    cls=DeskCommand,
    permission="Queues.Control",
    result="SteerBody",
    changes=True,
    expected=("revision",),
    read_by=READ,
    target="queue:{queue}",
)
@click.argument("queue", metavar="QUEUE")
async def resume(operation: "Operation", queue: str) -> "Answer":
    """Claim from a queue again."""
    from runwick.cli.targets import queue_revision

    revision = await queue_revision(operation, queue)
    return _steered(queue, await operation.desk.resume(queue, revision, operation.change))


def _steered(queue: str, done: "SteerBody") -> "Answer":
    from runwick.cli.answers import Answer, Seen, text_of

    again = "  (it was done before)" if done.replayed else ""
    return Answer(
        body=done,
        text=text_of(f"queue {queue}  {done.after}  revision {done.revision}{again}"),
        revisions={f"queue:{queue}": Seen(revision=done.revision)},
    )


def _table(found: "QueueListBody") -> str:
    from runwick.cli.job_text import moment_text
    from runwick.cli.tables import lay_out_table

    if not found.queues:
        return "no queues"
    rows = [
        [
            each.queue,
            "paused" if each.paused else "open",
            _count(each.due),
            _count(each.later),
            _count(each.blocked),
            _count(each.leased),
            None if each.oldest_due_at is None else moment_text(each.oldest_due_at),
            str(each.revision),
        ]
        for each in found.queues
    ]
    header = ["queue", "state", "due", "later", "held by a limit", "with workers", "oldest due since", "revision"]
    return lay_out_table(header, rows, indent="")


def _count(number: int) -> str:
    return f"{number:,}+" if number >= COUNTED_MAX else f"{number:,}"
