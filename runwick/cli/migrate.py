"""``runwick migrate``: the one command that creates a store or changes its schema.

The connection comes from the application, an environment variable or standard input, never from an argument, which
every user of the machine could read; and it is never printed.
"""

import os
import sys
from pathlib import Path

import click

from runwick.app.stores import migrate_store, open_store, resolve_url
from runwick.cli.application import app_dir_option, load
from runwick.config.options import StoreOptions
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.runtime.ambient import SystemClock, SystemIds

URL_MAX_CHARACTERS = 64 * 1024


@click.command()
@click.option("--app", metavar="MODULE[:ATTRIBUTE]", help="Migrate the store of this application.")
@app_dir_option
@click.option("--connection-env", metavar="NAME", help="The environment variable that holds the store's URL.")
@click.option("--connection-stdin", is_flag=True, help="Read the store's URL from standard input.")
def command(app: str | None, app_dir: str, connection_env: str | None, connection_stdin: bool) -> None:
    """Create the store, or bring it to this release's revision.

    Safe to run again. Give exactly one of --app, --connection-env and --connection-stdin.
    """
    if (app is not None) + (connection_env is not None) + connection_stdin != 1:
        raise click.UsageError("Give exactly one of --app, --connection-env and --connection-stdin.")
    if app is not None:
        runwick = load(app, app_dir)
        store, url = runwick.store, runwick.store_url
    else:
        url = _given_url(connection_env)
        store = open_store(url, StoreOptions(), SystemClock(), SystemIds())
    result = migrate_store(url, SystemClock(), SystemIds())
    click.echo(f"store     {store.description}")
    if result is None:
        click.echo("nothing to migrate")
        return
    click.echo(f"store id  {result.store_id}")
    click.echo(f"revision  {result.revision}")
    click.echo(f"applied   {', '.join(result.applied) or 'nothing, it was up to date'}")


def _given_url(variable: str | None) -> str:
    """The URL in an environment variable, or on standard input without one, its path made absolute.

    Raises:
        ConfigurationError: there is none (code ``missing_store``), or it is no store's (``invalid_store``).
    """
    if variable is None:
        text, source = sys.stdin.read(URL_MAX_CHARACTERS), "standard input"
    else:
        text, source = os.environ.get(variable, ""), f"the environment variable {variable}"
    url = text.strip()
    if not url:
        raise _refusal("missing_store", f"{source} holds no URL; use sqlite:///FILE.")
    if len(url.splitlines()) > 1:
        raise _refusal("invalid_store", f"{source} holds several lines; give the URL alone.")
    return resolve_url(url, Path.cwd())


def _refusal(code: str, sentence: str) -> ConfigurationError:
    return ConfigurationError([Problem(code, "store", sentence)])
