"""``runwick context``: saved servers. What is saved never holds a secret, only where to find it."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import AnsweringCommand, Topic

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.contexts import Contexts
    from runwick.cli.results import ContextBody


@click.group(cls=Topic)
def command() -> None:
    """Save servers, and choose the one to work on."""


@command.command(cls=AnsweringCommand, result="ContextBody")
@click.argument("name")
@click.option("--url", required=True, metavar="URL", help="Where the API is mounted, without /v1.")
@click.option("--auth", type=click.Choice(["basic", "bearer"]), default="bearer", show_default=True)
@click.option("--user", metavar="NAME", help="With --auth basic.")
@click.option("--secret-env", metavar="NAME", help="The environment variable that holds password or token.")
def add(name: str, url: str, auth: str, user: str | None, secret_env: str | None) -> "Answer":
    """Save a server, or replace it. The first one becomes the current one."""
    from typing import cast

    import msgspec

    from runwick.cli.contexts import Auth, Context, check_name, checked_context, read_contexts, write_contexts

    context = Context(url=url, auth=cast(Auth, auth), user=user, secret_env=secret_env)
    contexts, known = read_contexts(), check_name(name)
    saved = {**contexts.contexts, known: checked_context(context)}
    contexts = msgspec.structs.replace(contexts, contexts=saved, current=contexts.current or known)
    write_contexts(contexts)
    return _one(contexts, known)


@command.command(cls=AnsweringCommand, result="ContextBody")
@click.argument("name")
def use(name: str) -> "Answer":
    """Make a saved server the current one."""
    import msgspec

    from runwick.cli.contexts import read_contexts, write_contexts

    contexts = read_contexts()
    _check_known(contexts, name)
    contexts = msgspec.structs.replace(contexts, current=name)
    write_contexts(contexts)
    return _one(contexts, name)


@command.command("list", cls=AnsweringCommand, result="ContextListBody")
def list_() -> "Answer":
    """List the saved servers."""
    from runwick.cli.answers import Answer
    from runwick.cli.contexts import read_contexts
    from runwick.cli.results import ContextListBody

    contexts = read_contexts()
    found = tuple(_body(contexts, name) for name in sorted(contexts.contexts))
    return Answer(body=ContextListBody(contexts=found), text=lambda: _table(found))


@command.command(cls=AnsweringCommand, result="ContextBody")
@click.argument("name", required=False)
def show(name: str | None) -> "Answer":
    """Show a saved server; by default the current one."""
    from runwick.cli.contexts import read_contexts

    contexts = read_contexts()
    chosen = name or contexts.current
    if chosen is None:
        raise click.UsageError("There is no current context; 'runwick context add' saves one.")
    _check_known(contexts, chosen)
    return _one(contexts, chosen)


@command.command(cls=AnsweringCommand, result="ContextListBody")
@click.argument("name")
def remove(name: str) -> "Answer":
    """Forget a saved server."""
    import msgspec

    from runwick.cli.answers import Answer
    from runwick.cli.contexts import read_contexts, write_contexts
    from runwick.cli.results import ContextListBody

    contexts = read_contexts()
    _check_known(contexts, name)
    left = {known: each for known, each in contexts.contexts.items() if known != name}
    current = None if contexts.current == name else contexts.current
    contexts = msgspec.structs.replace(contexts, contexts=left, current=current)
    write_contexts(contexts)
    found = tuple(_body(contexts, known) for known in sorted(left))
    return Answer(body=ContextListBody(contexts=found), text=lambda: _table(found))


def _check_known(contexts: "Contexts", name: str) -> None:
    from runwick.cli.failures import Rejected, error_with
    from runwick.declarations.suggestions import did_you_mean

    if name not in contexts.contexts:
        message = f"there is no context {name!r}. {did_you_mean(name, contexts.contexts)}".rstrip()
        raise Rejected(error_with("not_found", message))


def _body(contexts: "Contexts", name: str) -> "ContextBody":
    from runwick.cli.results import ContextBody

    context = contexts.contexts[name]
    return ContextBody(
        name=name,
        url=context.url,
        auth=context.auth,
        user=context.user,
        secret_env=context.secret_env,
        current=contexts.current == name,
    )


def _one(contexts: "Contexts", name: str) -> "Answer":
    from runwick.cli.answers import Answer, text_of

    body = _body(contexts, name)
    shown = {
        "name": name,
        "url": body.url,
        "auth": body.auth,
        "user": body.user,
        "secret from": body.secret_env and f"${body.secret_env}",
        "current": "yes" if body.current else "no",
    }
    return Answer(body=body, text=text_of("\n".join(f"{key}: {value}" for key, value in shown.items() if value)))


def _table(found: "tuple[ContextBody, ...]") -> str:
    from runwick.cli.tables import lay_out_table

    if not found:
        return "no contexts"
    rows = [["*" if each.current else "", each.name, each.url, each.auth, each.user, each.secret_env] for each in found]
    return lay_out_table(["", "name", "url", "auth", "user", "secret from"], rows, indent="")
