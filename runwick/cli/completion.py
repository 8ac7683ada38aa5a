"""``runwick completion``: what a shell runs to complete commands and options."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import AnsweringCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer


@click.command(cls=AnsweringCommand, result="CompletionBody")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> "Answer":
    """Print the completion script for a shell.

    In bash and zsh: eval "$(runwick completion bash)". In fish: runwick completion fish | source.
    """
    from click.shell_completion import get_completion_class

    from runwick.cli.answers import Answer
    from runwick.cli.results import CompletionBody

    found = get_completion_class(shell)
    assert found is not None, "the choices are those that click knows"
    script = found(ctx.find_root().command, {}, "runwick", "_RUNWICK_COMPLETE").source()
    return Answer(body=CompletionBody(shell=shell, script=script), text=lambda: script)
