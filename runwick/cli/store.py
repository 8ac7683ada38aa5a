"""``runwick store``: what an operator does to a store itself. These commands run with the role that migrates it."""

import contextlib
import getpass
import json
from collections.abc import Iterator

import click

from runwick.app.stores import open_administration
from runwick.cli.connection import connection_options
from runwick.cli.tables import lay_out_table
from runwick.contracts.administration import Administration, Admission, Capability, StoreStatus
from runwick.contracts.identity import id_text
from runwick.runtime.ambient import SystemClock, SystemIds

application_option = click.option("--application", metavar="NAME", help="Only this application.")


@click.group()
def command() -> None:
    """See to a store: status, admission, capabilities, identity.

    Give each command exactly one of --app, --connection-env and --connection-stdin.
    """


@command.command()
@connection_options
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="For people, or for programs.")
def status(url: str, output: str) -> None:
    """Show identity, revision, and each application's admission mode, leases and workers."""
    with _administration(url) as administration:
        found = administration.status()
        if output == "json":
            click.echo(json.dumps(_as_json(found)))
            return
        click.echo(f"store     {administration.description}")
        click.echo(f"store id  {id_text(found.store_id)}")
        fits = "" if found.revision == found.revision_expected else f"; this release expects {found.revision_expected}"
        click.echo(f"revision  {found.revision}{fits}")
        if found.applications:
            click.echo(_table(found))
        elif not fits:
            click.echo("no application has used it yet")


@command.command()
@connection_options
@click.option("--mode", type=click.Choice([mode.value for mode in Admission]), required=True)
@application_option
def admission(url: str, mode: str, application: str | None) -> None:
    """Open an application, drain it, or put it under maintenance; all of them without --application.

    Drain stops all new work and lets running work end. Maintenance, which follows drain, stops everything but reading.
    """
    with _administration(url) as administration:
        for changed in administration.set_admission(Admission(mode), application):
            click.echo(f"{changed.name}  {changed.admission.value}")


@command.command("activate-capability")
@connection_options
@click.option("--name", type=click.Choice([capability.value for capability in Capability]), required=True)
@click.option("--application", metavar="NAME", required=True, help="The application that gets it.")
def activate_capability(url: str, name: str, application: str) -> None:
    """Turn a capability on for an application. It cannot be turned off again."""
    with _administration(url) as administration:
        is_new = administration.activate(Capability(name), application, actor=getpass.getuser())
        click.echo(f"{application}  {name} {'is active now, for good' if is_new else 'was active already'}")


@command.command()
@connection_options
@click.option("--confirm", is_flag=True, help="Really do it.")
def reidentify(url: str, confirm: bool) -> None:
    """Give a restored copy an identity of its own. Offline only: every application is under maintenance."""
    if not confirm:
        raise click.UsageError("Whatever is bound to the old identity is refused afterwards. Repeat it with --confirm.")
    with _administration(url) as administration:
        click.echo(f"store id  {id_text(administration.reidentify())}")


@contextlib.contextmanager
def _administration(url: str) -> Iterator[Administration]:
    administration = open_administration(url, SystemClock(), SystemIds())
    try:
        yield administration
    finally:
        administration.close()


def _table(found: StoreStatus) -> str:
    rows = [
        [
            each.name,
            each.admission.value,
            str(each.leases),
            str(each.leases_valid),
            str(each.workers),
            ", ".join(each.capabilities) or None,
        ]
        for each in found.applications
    ]
    return lay_out_table(["application", "admission", "leases", "valid", "workers", "capabilities"], rows)


def _as_json(found: StoreStatus) -> dict[str, object]:
    return {
        "storeId": id_text(found.store_id),
        "revision": found.revision,
        "revisionExpected": found.revision_expected,
        "applications": [
            {
                "name": each.name,
                "admission": each.admission.value,
                "capabilities": list(each.capabilities),
                "leases": each.leases,
                "leasesValid": each.leases_valid,
                "workers": each.workers,
            }
            for each in found.applications
        ],
    }
