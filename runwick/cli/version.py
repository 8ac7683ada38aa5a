"""``runwick version``."""

import click

from runwick.version import __version__


@click.command()
def command() -> None:
    """Show the version."""
    click.echo(f"runwick {__version__}")
