"""``runwick version``."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import AnsweringCommand
from runwick.version import __version__

if TYPE_CHECKING:
    from runwick.cli.answers import Answer


@click.command(cls=AnsweringCommand, result="VersionBody")
def command() -> "Answer":
    """Show the version."""
    from runwick.cli.answers import Answer, text_of
    from runwick.cli.results import VersionBody

    return Answer(body=VersionBody(version=__version__), text=text_of(f"runwick {__version__}"))
