"""``runwick migrate``: the one command that creates a store or changes its schema."""

import click

from runwick.app.stores import describe_store, migrate_store
from runwick.cli.answers import Answer, text_of
from runwick.cli.commands import AnsweringCommand
from runwick.cli.connection import connection_options, store_options
from runwick.cli.results import MigrateBody
from runwick.runtime.ambient import SystemClock, SystemIds


@click.command(cls=AnsweringCommand, result="MigrateBody")
@connection_options
def command(url: str) -> Answer:
    """Create the store, or bring it to this release's revision.

    Safe to run again. Give exactly one of --app, --connection-env and --connection-stdin. A server that can lose what
    it confirmed is refused; on PostgreSQL RUNWICK_ALLOW_UNSAFE_DURABILITY=true lets it through.
    """
    result = migrate_store(url, SystemClock(), SystemIds(), store_options())
    store = describe_store(url)
    if result is None:
        body = MigrateBody(store=store, store_id=None, revision=None, applied=())
        return Answer(body=body, text=text_of(f"store     {store}\nnothing to migrate"))
    lines = [
        f"store     {store}",
        f"store id  {result.store_id}",
        f"revision  {result.revision}",
        f"applied   {', '.join(result.applied) or 'nothing, it was up to date'}",
    ]
    body = MigrateBody(
        store=store, store_id=str(result.store_id), revision=result.revision, applied=tuple(result.applied)
    )
    return Answer(body=body, text=text_of("\n".join(lines)))
