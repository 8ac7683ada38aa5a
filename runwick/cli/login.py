"""``runwick login``: whether a server lets somebody in. Nothing is stored: every command signs in by itself."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import AnsweringCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer


@click.command(cls=AnsweringCommand, result="LoginBody")
@click.option("--context", metavar="NAME", help="This saved server instead of the current one.")
@click.option("--url", metavar="URL", help="This server, with --user or a bearer token.")
@click.option("--user", metavar="NAME", help="With --url: sign in with a password, as this user.")
@click.option("--secret-stdin", is_flag=True, help="Read password or token from standard input.")
@click.pass_context
def command(ctx: click.Context, context: str | None, url: str | None, user: str | None, secret_stdin: bool) -> "Answer":
    """Check that a server lets you in; nothing is stored."""
    import asyncio

    from runwick.cli.answers import Answer
    from runwick.cli.modes import chosen_mode
    from runwick.cli.places import Place, server_desk
    from runwick.cli.results import LoginBody

    place = Place(context=context, url=url, user=user, secret_stdin=secret_stdin)
    desk, server, name = server_desk(place, chosen_mode(ctx))
    asyncio.run(desk.sign_in())
    who = "" if server.user is None else f" as {server.user}"
    named = "" if name is None else f" ({name})"
    body = LoginBody(url=server.url, auth=server.auth, user=server.user)
    return Answer(body=body, text=lambda: f"signed in to {server.url}{named}{who}; nothing is stored")
