"""``runwick store``: what an operator does to a store itself. These commands run with the role that migrates it."""

import contextlib
import getpass
from collections.abc import Iterator, Sequence

import click

from runwick.app.stores import open_administration
from runwick.cli.answers import Answer, text_of
from runwick.cli.commands import AnsweringCommand, Topic
from runwick.cli.connection import connection_options
from runwick.cli.results import AdmissionBody, ApplicationStatusBody, CapabilityBody, ReidentifyBody, StoreStatusBody
from runwick.cli.tables import lay_out_table
from runwick.contracts.administration import Administration, Admission, ApplicationStatus, Capability
from runwick.contracts.identity import id_text
from runwick.runtime.ambient import SystemClock, SystemIds

application_option = click.option("--application", metavar="NAME", help="Only this application.")


@click.group(cls=Topic)
def command() -> None:
    """See to a store: status, admission, capabilities, identity.

    Give each command exactly one of --app, --connection-env and --connection-stdin.
    """


@command.command(cls=AnsweringCommand, result="StoreStatusBody")
@connection_options
def status(url: str) -> Answer:
    """Show identity, revision, and each application's admission mode, leases and workers."""
    with _administration(url) as administration:
        found, description = administration.status(), administration.description
    body = StoreStatusBody(
        store_id=id_text(found.store_id),
        revision=found.revision,
        revision_expected=found.revision_expected,
        applications=_bodies(found.applications),
    )
    return Answer(body=body, text=lambda: _status_text(body, description))


@command.command(cls=AnsweringCommand, result="AdmissionBody")
@connection_options
@click.option("--mode", type=click.Choice([mode.value for mode in Admission]), required=True)
@application_option
def admission(url: str, mode: str, application: str | None) -> Answer:
    """Open an application, drain it, or put it under maintenance; all of them without --application.

    Drain stops all new work and lets running work end. Maintenance, which follows drain, stops everything but reading.
    """
    with _administration(url) as administration:
        changed = administration.set_admission(Admission(mode), application)
    shown = "\n".join(f"{each.name}  {each.admission.value}" for each in changed)
    return Answer(body=AdmissionBody(applications=_bodies(changed)), text=text_of(shown))


@command.command("activate-capability", cls=AnsweringCommand, result="CapabilityBody")
@connection_options
@click.option("--name", type=click.Choice([capability.value for capability in Capability]), required=True)
@click.option("--application", metavar="NAME", required=True, help="The application that gets it.")
def activate_capability(url: str, name: str, application: str) -> Answer:
    """Turn a capability on for an application. It cannot be turned off again."""
    with _administration(url) as administration:
        is_new = administration.activate(Capability(name), application, actor=getpass.getuser())
    shown = f"{application}  {name} {'is active now, for good' if is_new else 'was active already'}"
    return Answer(body=CapabilityBody(application=application, name=name, is_new=is_new), text=text_of(shown))


@command.command(cls=AnsweringCommand, result="ReidentifyBody")
@connection_options
@click.option("--confirm", is_flag=True, help="Really do it.")
def reidentify(url: str, confirm: bool) -> Answer:
    """Give a restored copy an identity of its own. Offline only: every application is under maintenance."""
    if not confirm:
        raise click.UsageError("Whatever is bound to the old identity is refused afterwards. Repeat it with --confirm.")
    with _administration(url) as administration:
        store_id = id_text(administration.reidentify())
    return Answer(body=ReidentifyBody(store_id=store_id), text=text_of(f"store id  {store_id}"))


@contextlib.contextmanager
def _administration(url: str) -> Iterator[Administration]:
    administration = open_administration(url, SystemClock(), SystemIds())
    try:
        yield administration
    finally:
        administration.close()


def _bodies(found: Sequence[ApplicationStatus]) -> tuple[ApplicationStatusBody, ...]:
    return tuple(
        ApplicationStatusBody(
            name=each.name,
            admission=each.admission.value,
            capabilities=tuple(each.capabilities),
            leases=each.leases,
            leases_valid=each.leases_valid,
            workers=each.workers,
        )
        for each in found
    )


def _status_text(body: StoreStatusBody, description: str) -> str:
    fits = "" if body.revision == body.revision_expected else f"; this release expects {body.revision_expected}"
    lines = [f"store     {description}", f"store id  {body.store_id}", f"revision  {body.revision}{fits}"]
    if body.applications:
        lines.append(_table(body.applications))
    elif not fits:
        lines.append("no application has used it yet")
    return "\n".join(lines)


def _table(applications: Sequence[ApplicationStatusBody]) -> str:
    rows = [
        [
            each.name,
            each.admission,
            str(each.leases),
            str(each.leases_valid),
            str(each.workers),
            ", ".join(each.capabilities) or None,
        ]
        for each in applications
    ]
    return lay_out_table(["application", "admission", "leases", "valid", "workers", "capabilities"], rows)
