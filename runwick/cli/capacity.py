"""``runwick capacity``: scopes, which say how many jobs may run at once for a queue, a type or a resource."""

from typing import TYPE_CHECKING, Final

import click

from runwick.cli.commands import DeskCommand, Topic
from runwick.cli.pages import more_text, next_page, page_options

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import ScopeListBody

KINDS: Final = ("queue", "job-type", "resource")


@click.group(cls=Topic)
def command() -> None:
    """List and change how many jobs run at once."""


@command.command("list", cls=DeskCommand, permission="Capacity.Read", result="ScopeListBody")
@click.option("--kind", type=click.Choice(KINDS), help="Only those of this kind.")
@page_options
async def list_(operation: "Operation", kind: str | None, cursor: str | None, limit: int) -> "Answer":
    """List scopes with their capacity and what is in use."""
    from runwick.cli.answers import Answer
    from runwick.cli.targets import scope_revisions
    from runwick.contracts.limits import LimitKind

    page = await operation.desk.scopes(None if kind is None else LimitKind(kind), cursor, limit)
    return Answer(
        body=page,
        text=lambda: _table(page) + more_text(page.cursor),
        revisions=scope_revisions(*page.scopes),
        next_actions=next_page(operation, page.cursor),
    )


@command.command(
    "set",
    cls=DeskCommand,
    permission="Capacity.Edit",
    result="SteerBody",
    changes=True,
    expected=("revision",),
    read_by=("capacity list", "--kind", "{kind}"),
    target="scope:{kind}/{key}",
)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("key")
@click.argument("capacity", type=click.IntRange(min=1), metavar="NUMBER")
async def set_(operation: "Operation", kind: str, key: str, capacity: int) -> "Answer":
    """Change how many jobs may hold a scope at once. Lowering it stops nothing that runs."""
    from runwick.cli.answers import Answer, Seen, text_of
    from runwick.cli.tables import terminal_text
    from runwick.cli.targets import scope_revision
    from runwick.contracts.limits import LimitKind

    which = LimitKind(kind)
    revision = await scope_revision(operation, which, key)
    done = await operation.desk.set_capacity(which, key, capacity, revision, operation.change)
    again = "  (it was done before)" if done.replayed else ""
    shown = f"{kind} {terminal_text(key)}  {done.before} → {done.after}  revision {done.revision}{again}"
    return Answer(body=done, text=text_of(shown), revisions={f"scope:{kind}/{key}": Seen(revision=done.revision)})


def _table(page: "ScopeListBody") -> str:
    from runwick.cli.tables import lay_out_table

    if not page.scopes:
        return "no scopes"
    rows = [
        [
            each.kind,
            each.key,
            f"{each.capacity:,}",
            f"{each.in_use:,}",
            "yes" if each.waiting else None,
            str(each.revision),
        ]
        for each in page.scopes
    ]
    return lay_out_table(["kind", "key", "capacity", "in use", "waiting", "revision"], rows, indent="")
