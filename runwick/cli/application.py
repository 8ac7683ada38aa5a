"""The application that a command works on: ``--app`` and ``--app-dir``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from runwick.app.locate import locate
from runwick.app.runwick import Runwick

F = TypeVar("F", bound=Callable[..., Any])

app_dir_option = click.option(
    "--app-dir",
    metavar="DIRECTORY",
    default=".",
    type=click.Path(exists=True, file_okay=False),
    help="Comes first on the import path instead of the current directory.",
)


def application_options(command: F) -> F:
    """Give a command the options ``--app`` (required) and ``--app-dir``."""
    app_option = click.option(
        "--app", metavar="MODULE[:ATTRIBUTE]", required=True, help="Where the application's Runwick object lives."
    )
    return app_option(app_dir_option(command))


def load(app: str, app_dir: str) -> Runwick:
    """Import the application.

    Raises:
        ConfigurationError: there is no such module, it fails, or it has not exactly one Runwick object to name.
    """
    return locate(app, Path(app_dir))
