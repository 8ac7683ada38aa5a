"""``runwick describe``: every command as data, so that a program can learn the command line from itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from runwick.cli.commands import AnsweringCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer


@click.command(cls=AnsweringCommand, result="DescribeBody")
@click.pass_context
def command(ctx: click.Context) -> "Answer":
    """Tell programs every command, with its options and results."""
    from runwick.cli.answers import Answer
    from runwick.cli.described import described

    root = ctx.find_root()
    body = described(list(leaves(root.command, root)))
    return Answer(body=body, text=lambda: "\n".join(f"runwick {each.name}  {each.summary}" for each in body.commands))


def leaves(group: click.Command, ctx: click.Context, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that can be run, with the words by which it is called."""
    if not isinstance(group, click.Group):
        yield " ".join(names), group
        return
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        assert found is not None, "a group has what it lists"
        yield from leaves(found, ctx, *names, name)
