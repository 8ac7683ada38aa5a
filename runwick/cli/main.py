"""``runwick``: the group of all subcommands. It loads click and nothing else, so that ``--help`` answers at once.

Exit status: 0 done, 1 refused or failed, 2 wrong usage or configuration, 3 the outcome is unknown, 4 no answer, 5 not
signed in or not allowed. Results go to standard output, everything else to standard error, unless ``--output json`` or
``--agent`` asks for JSON.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from runwick.cli.commands import PLACE, Topic
from runwick.cli.modes import Mode, chosen_color, chosen_mode, mode_options, written_mode
from runwick.version import __version__

SUMMARIES: Final = {
    "jobs": "Look at jobs, follow them, and control them.",
    "dispatch": "Create a job by hand, from a JSON payload.",
    "queues": "List queues, pause and resume them.",
    "workers": "List workers and what their executors do.",
    "top": "Watch executors at work.",
    "types": "Show what the jobs of each type cost.",
    "capacity": "List and change how many jobs run at once.",
    "rates": "List limits of how many jobs begin within a time.",
    "events": "Follow what happens to jobs.",
    "audit": "List what operators did.",
    "overview": "Show what is wrong first, then figures.",
    "settings": "Show the store and the options.",
    "context": "Save servers, and choose the one to work on.",
    "login": "Check that a server lets you in; nothing is stored.",
    "doctor": "Check a server and a store from here.",
    "check": "Check the configuration and the store; start nothing.",
    "health": "Say how the workers of this user on this host are.",
    "migrate": "Create the store, or bring it to this release's revision.",
    "store": "See to a store: status, admission, capabilities, identity.",
    "web": "Serve the dashboard and the API of one application.",
    "worker": "Run an application's jobs in this process, on threads and one event loop.",
    "describe": "Tell programs every command, with its options and results.",
    "completion": "Print the completion script for a shell.",
    "version": "Show the version.",
}
"""Subcommands, each the ``command`` of its module in this package, with the line that ``--help`` shows."""

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as shells have it."""


class Subcommands(Topic):
    """Loads a subcommand's module only to run it, and says what Runwick refused in its own words."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUMMARIES:
            return None
        command: click.Command = importlib.import_module(f"runwick.cli.{cmd_name}").command
        return command

    def takers(self, option: str) -> list[str]:
        """One of many, without loading any; so for options that say where to work."""
        return ["jobs list"] if option in {f"--{name.replace('_', '-')}" for name in PLACE} else []

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def main(self, args: Sequence[str] | None = None, *others: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run, and end the process with an exit status, whatever happens."""
        run: Callable[..., Any] = functools.partial(super().main, standalone_mode=False, **extra)
        if not standalone_mode:
            return run(args, *others)
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            sys.exit(run(arguments, *others) or 0)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except Exception as failure:
            sys.exit(_told(failure, written_mode(arguments)))


def _told(failure: Exception, mode: Mode) -> int:
    """Say what a command that tells nothing itself refused, or that the command line cannot be read; returns the exit
    status. It raises what is a fault of the program."""
    if mode is Mode.PEOPLE and isinstance(failure, click.ClickException):
        failure.show()
        return failure.exit_code
    if mode is not Mode.PEOPLE:
        from runwick.cli.tellers import teller_for

        ctx = getattr(failure, "ctx", None)
        path = "" if ctx is None else ctx.command_path
        return teller_for(mode, path.partition(" ")[2]).refuse(failure)
    from runwick.cli.refusals import tell

    if (status := tell(failure)) is None:
        raise failure
    return status


@click.group(cls=Subcommands, params=mode_options(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="runwick %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Typed background jobs, durable in your own store.

    An application is named as MODULE or MODULE:ATTRIBUTE; the current directory comes first on the import path.
    Commands work on its store with --app, on a store with --connection-env, and otherwise on the server that
    'runwick context use' chose.
    """
    ctx.color = chosen_color()
    command = main.get_command(ctx, ctx.invoked_subcommand or "")
    if chosen_mode(ctx) is not Mode.PEOPLE and not (isinstance(command, click.Group) or hasattr(command, "has_modes")):
        raise click.UsageError(f"runwick {ctx.invoked_subcommand} is for people and has neither --agent nor --output.")
