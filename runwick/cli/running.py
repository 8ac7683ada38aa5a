"""Runs one command, and tells its answer or what it was refused."""

import click

from runwick.cli.answers import Answer
from runwick.cli.commands import AnsweringCommand
from runwick.cli.modes import chosen_mode
from runwick.cli.tellers import After, Teller, teller_for


def run_plain(command: AnsweringCommand, ctx: click.Context) -> int:
    """Run a command that needs no desk; returns the exit status."""
    teller = teller_for(chosen_mode(ctx), typed_name(ctx))
    assert command.callback is not None
    try:
        answer: Answer = ctx.invoke(command.callback, **ctx.params)
    except Exception as failure:
        return refused(teller, failure)
    return teller.answer(answer)


def refused(teller: Teller, failure: Exception, after: After | None = None) -> int:
    """Tell what a command was refused; returns the exit status. What ends the process as such goes on."""
    if isinstance(failure, click.exceptions.Exit | click.Abort | BrokenPipeError):
        raise failure
    return teller.refuse(failure, after)


def typed_name(ctx: click.Context) -> str:
    """The command as it is typed, without the program."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(names)
