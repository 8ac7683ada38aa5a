"""Where a command works: on a store of this machine's reach, or on a server that is asked over the API."""

import contextlib
import getpass
import importlib.util
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from runwick.cli.answers import CliPart
from runwick.cli.application import load
from runwick.cli.connection import named_store, store_options
from runwick.cli.contexts import Auth, Context, check_url, checked_context, read_contexts
from runwick.cli.desks import OperatorDesk
from runwick.cli.failures import NotSignedIn
from runwick.cli.modes import Mode
from runwick.contracts.controls import ManagementActor
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.management.permissions import EVERYTHING, Caller
from runwick.version import __version__

if TYPE_CHECKING:
    from runwick.cli.remote_desk import RemoteDesk


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of a command say of where it works."""

    app: str | None = None
    app_dir: str = "."
    connection_env: str | None = None
    application: str | None = None
    context: str | None = None
    url: str | None = None
    user: str | None = None
    secret_stdin: bool = False

    @property
    def is_store(self) -> bool:
        """It works on a store itself."""
        return self.app is not None or self.connection_env is not None

    @property
    def arguments(self) -> Sequence[str]:
        """The options again, for a command that works in the same place."""
        given = (
            ("--app", self.app),
            ("--app-dir", self.app_dir if self.app_dir != "." else None),
            ("--connection-env", self.connection_env),
            ("--application", self.application),
            ("--context", self.context),
            ("--url", self.url),
            ("--user", self.user),
        )
        return [word for option, value in given if value is not None for word in (option, value)]

    def found(self, context: str | None) -> "Place":
        """The same place by its name, which stays right when another context becomes the current one."""
        return self if context is None else msgspec.structs.replace(self, context=context)

    def check(self) -> None:
        """Go on only where the options go together.

        Raises:
            click.UsageError: they do not.
            InvalidArgument: the URL is none that a secret may go to (code ``invalid_argument``).
        """
        if self.url is not None:
            check_url(self.url)
        is_server = self.context is not None or self.url is not None
        if (self.app is not None) + (self.connection_env is not None) + is_server > 1:
            raise click.UsageError("Give one of --app, --connection-env and --context or --url: one place to work in.")
        if (self.connection_env is None) is not (self.application is None):
            raise click.UsageError("--connection-env and --application go together.")
        if self.context is not None and self.url is not None:
            raise click.UsageError("--context names a saved server, --url one that is not; give one of them.")
        if self.user is not None and self.url is None:
            raise click.UsageError("--user goes with --url; a context has its own.")
        if self.secret_stdin and self.is_store:
            raise click.UsageError("--secret-stdin is for a server; a store needs no secret.")


@contextlib.contextmanager
def open_desk(place: Place, mode: Mode) -> Iterator[tuple[OperatorDesk, CliPart]]:
    """The desk of a place, and what agents are told of it. What is slow or may fail, such as importing an application,
    happens here, before any event loop runs.

    Raises:
        click.UsageError: no place is named.
        ConfigurationError: the application, the store's URL or the context is none.
        NotSignedIn: there is no secret for the server (code ``credential_missing``).
    """
    place.check()
    if not place.is_store:
        desk, server, name = server_desk(place, mode)
        yield desk, CliPart(version=__version__, context=name, url=server.url)
        return
    cli = CliPart(version=__version__, app=place.app or place.application)
    from runwick.cli.local_desk import LocalDesk

    user = getpass.getuser()
    caller = Caller.of(ManagementActor(user, user, "os_user"), EVERYTHING)
    if place.app is not None:
        with contextlib.closing(load(place.app, place.app_dir)) as runwick:
            yield LocalDesk(runwick.desk, caller), cli
        return
    from runwick.app.stores import open_store
    from runwick.management.desk import Desk
    from runwick.runtime.ambient import SystemClock, SystemIds

    clock, ids = SystemClock(), SystemIds()
    url = named_store(None, ".", place.connection_env, connection_stdin=False, provider=None)
    with contextlib.closing(open_store(url, store_options(), clock, ids)) as store:
        yield LocalDesk(Desk(place.application or "", lambda: store, ids, clock), caller), cli


def server_desk(place: Place, mode: Mode) -> "tuple[RemoteDesk, Context, str | None]":
    """The desk of a server, the server, and its name where it has one; raising as `open_desk`."""
    place.check()
    name, context = server_of(place)
    _check_extra()
    from runwick.cli.remote_desk import RemoteDesk
    from runwick.cli.secret import find_secret

    whose = f"password of {context.user}" if context.auth == "basic" else "token"
    asked_for = f"{whose} at {context.url}"
    secret = find_secret(mode, context.secret_env, from_stdin=place.secret_stdin, asked_for=asked_for)
    if context.auth == "bearer" and not secret.isascii():
        raise NotSignedIn("credential_missing", "the secret is no bearer token: it holds more than ASCII")
    return RemoteDesk(context, secret), context, name


def _check_extra() -> None:
    if importlib.util.find_spec("httpx") is None:
        message = "asking a server needs httpx; pip install 'runwick[remote]'."
        raise ConfigurationError([Problem("extra_missing", "runwick[remote]", message)])


def server_of(place: Place) -> tuple[str | None, Context]:
    """The server, with its name where it has one.

    A context's secret goes to that context's address alone: with ``--url`` nothing of a context is used.

    Raises:
        click.UsageError: no server is named, or there is none of that name.
    """
    if place.url is not None:
        auth: Auth = "bearer" if place.user is None else "basic"
        return None, checked_context(Context(url=place.url, auth=auth, user=place.user))
    contexts = read_contexts()
    name = place.context or contexts.current
    if name is None:
        raise click.UsageError(
            "Say where: --app MODULE, --connection-env NAME with --application NAME, or a server that "
            "'runwick context add' saved."
        )
    if name not in contexts.contexts:
        raise click.UsageError(f"There is no context {name!r}; 'runwick context list' shows them.")
    return name, contexts.contexts[name]
