"""``runwick migrate``: the one command that creates a store or changes its schema."""

import os

import click

from runwick.app.stores import describe_store, migrate_store
from runwick.cli.connection import connection_options
from runwick.config.options import PostgresOptions, StoreOptions
from runwick.config.sources import read_environment
from runwick.contracts.errors import ConfigurationError
from runwick.runtime.ambient import SystemClock, SystemIds


@click.command()
@connection_options
def command(url: str) -> None:
    """Create the store, or bring it to this release's revision.

    Safe to run again. Give exactly one of --app, --connection-env and --connection-stdin. A server that can lose what
    it confirmed is refused, unless RUNWICK_ALLOW_UNSAFE_DURABILITY=true.
    """
    result = migrate_store(url, SystemClock(), SystemIds(), _options())
    click.echo(f"store     {describe_store(url)}")
    if result is None:
        click.echo("nothing to migrate")
        return
    click.echo(f"store id  {result.store_id}")
    click.echo(f"revision  {result.revision}")
    click.echo(f"applied   {', '.join(result.applied) or 'nothing, it was up to date'}")


def _options() -> StoreOptions:
    """What the environment says of stores.

    Raises:
        ConfigurationError: with everything that is wrong in it.
    """
    environment = read_environment(os.environ)
    if environment.problems:
        raise ConfigurationError(environment.problems)
    return StoreOptions(postgres=environment.applied_to(PostgresOptions()))
