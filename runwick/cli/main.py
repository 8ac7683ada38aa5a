"""``runwick``: the group of all subcommands. It loads click and nothing else, so that ``--help`` answers at once.

Exit status: 0 done, 1 refused or failed, 2 wrong usage or configuration, 3 the outcome is unknown, 4 the store gives no
answer. Results go to standard output, everything else to standard error.
"""

import importlib
from typing import Any, Final

import click

from runwick.version import __version__

SUMMARIES: Final = {
    "check": "Check the configuration and the store; start nothing.",
    "jobs": "Look at jobs.",
    "migrate": "Create the store, or bring it to this release's revision.",
    "store": "See to a store: status, admission, capabilities, identity.",
    "version": "Show the version.",
    "worker": "Run an application's jobs in this process, on threads and one event loop.",
}
"""Subcommands, each the ``command`` of its module in this package, with the line that ``--help`` shows."""


class Subcommands(click.Group):
    """Loads a subcommand's module only to run it, and says what Runwick refused in its own words."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUMMARIES:
            return None
        command: click.Command = importlib.import_module(f"runwick.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as failure:
            from runwick.cli.refusals import tell

            if (status := tell(failure)) is None:
                raise
            ctx.exit(status)


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="runwick %(version)s")
def main() -> None:
    """Typed background jobs, durable in your own store.

    An application is named as MODULE or MODULE:ATTRIBUTE; the current directory comes first on the import path.
    """
