"""``runwick doctor``: whether server and store are as they should be, seen from here.

What could not be looked at is ``unverified``, never passed.
"""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import AnsweringCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.results import CheckBody


@click.command(cls=AnsweringCommand, result="DoctorBody")
@click.option("--context", metavar="NAME", help="This saved server instead of the current one.")
@click.option("--url", metavar="URL", help="This server, with --user or a bearer token.")
@click.option("--user", metavar="NAME", help="With --url: sign in with a password, as this user.")
@click.option("--secret-stdin", is_flag=True, help="Read password or token from standard input.")
@click.option("--app", metavar="MODULE[:ATTRIBUTE]", help="Check the store of this application.")
@click.option(
    "--app-dir",
    metavar="DIRECTORY",
    default=".",
    type=click.Path(exists=True, file_okay=False),
    help="Comes first on the import path instead of the current directory.",
)
@click.option("--connection-env", metavar="NAME", help="Check the store whose URL this environment variable holds.")
@click.option("--connection-stdin", is_flag=True, help="Check the store whose URL standard input holds.")
@click.pass_context
def command(
    ctx: click.Context,
    context: str | None,
    url: str | None,
    user: str | None,
    secret_stdin: bool,
    app: str | None,
    app_dir: str,
    connection_env: str | None,
    connection_stdin: bool,
) -> "Answer":
    """Check a server and a store from here.

    The server is the current context's, or the one that is named; a store is checked where one is named. What could not
    be looked at is unverified.
    """
    import asyncio

    from runwick.cli.connection import named_store
    from runwick.cli.doctor_server import check_server
    from runwick.cli.doctor_store import check_store
    from runwick.cli.modes import chosen_mode
    from runwick.cli.places import Place

    if secret_stdin and connection_stdin:
        raise click.UsageError("--secret-stdin and --connection-stdin both want standard input; give one of them.")
    names_store = app is not None or connection_env is not None or connection_stdin
    store_url = named_store(app, app_dir, connection_env, connection_stdin, None) if names_store else None
    server = Place(context=context, url=url, user=user, secret_stdin=secret_stdin)
    checks = [*asyncio.run(check_server(server, chosen_mode(ctx), is_asked_for=not names_store))]
    return _answer([*checks, *check_store(store_url)])


def _answer(checks: "list[CheckBody]") -> "Answer":
    from runwick.cli.answers import Answer
    from runwick.cli.failures import error_with
    from runwick.cli.results import DoctorBody

    failed = [each.name for each in checks if each.status == "failed"]
    return Answer(
        body=DoctorBody(checks=tuple(checks)),
        text=lambda: _table(checks),
        failure=error_with("check_failed", f"failed: {', '.join(failed)}") if failed else None,
    )


def _table(checks: "list[CheckBody]") -> str:
    from runwick.cli.tables import lay_out_table

    return lay_out_table(["check", "status", "detail"], [[each.name, each.status, each.detail] for each in checks], "")
