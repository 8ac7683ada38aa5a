"""``runwick web``: the dashboard and the API of one application in this process, without a web application around them.

    --app, or a store and a name ────────────▶ desk ───────┐
    --auth and --grants, or a one-time link ─▶ management ─┴─▶ site ─▶ Uvicorn, on loopback unless told otherwise

There is no anonymous mode: without ``--auth`` and ``--grants`` it listens on this machine alone, and lets in whoever
first opens the link that it prints.
"""

import contextlib
import getpass
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from setproctitle import setproctitle

from runwick.app.locate import locate_object
from runwick.app.stores import open_store
from runwick.cli.application import app_dir_option, load
from runwick.cli.connection import named_store, store_options
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.stores import Store
from runwick.health import health_app
from runwick.health.watch import Watch
from runwick.management.desk import Desk
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.version import __version__

if TYPE_CHECKING:
    from runwick.management.web import Management, OneTimeLink, Scheme

PORT: Final = 8710
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_NEEDED: Final = ("jinja2", "starlette", "uvicorn")


@click.command()
@click.option("--app", metavar="MODULE[:ATTRIBUTE]", help="Where the application's Runwick object lives.")
@app_dir_option
@click.option("--connection-env", metavar="NAME", help="Without --app: the environment variable with the store's URL.")
@click.option("--application", metavar="NAME", help="Without --app: whose jobs in that store.")
@click.option("--auth", metavar="MODULE:ATTRIBUTE", help="The scheme, or a list of schemes, by which callers sign in.")
@click.option("--grants", metavar="MODULE:ATTRIBUTE", help="The function from a principal to what he may do.")
@click.option("--host", default=LOOPBACK[0], show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--root-path", metavar="PATH", default="", help="The path below which a proxy serves it: /runwick.")
@click.option("--trust-proxy", metavar="ADDRESS,…", help="Believe what these forward of the client and of HTTPS.")
def command(
    app: str | None,
    app_dir: str,
    connection_env: str | None,
    application: str | None,
    auth: str | None,
    grants: str | None,
    host: str,
    port: int,
    root_path: str,
    trust_proxy: str | None,
) -> None:
    """Serve the dashboard and the API of one application.

    Give --app, or --connection-env and --application where the application's code is not at hand; then nothing can be
    dispatched by hand. Without --auth and --grants it prints a link that signs in whoever opens it first on this
    machine, once, within 10 minutes, with every permission. TERM or Ctrl-C lets requests end; a second Ctrl-C does not.
    """
    _check_usage(app, connection_env, application, auth, grants, host, root_path)
    _check_extra()
    from runwick.cli.web_server import Server, listen, origin_of
    from runwick.management.web.site import site

    with _desk(app, app_dir, connection_env, application) as (desk, store):
        store.check()
        management, link = _management(desk, auth, grants, Path(app_dir))
        clock = SystemClock()
        watch = Watch(desk.application, lambda: store, clock, roles=("management",))
        watch.health()  # so that it knows something when it is first asked
        with contextlib.closing(watch), contextlib.closing(listen(host, port)) as bound:
            setproctitle(f"runwick web {desk.application}")
            served = site(management, health=health_app(watch), link=link)
            server = Server(served, bound, root_path, trust_proxy)
            notes = [*store.notes, *_unused(desk.application, store)]
            _tell(desk.application, store, notes, f"{origin_of(bound, host)}{root_path}", link)
            server.run()


def _check_usage(
    app: str | None,
    connection_env: str | None,
    application: str | None,
    auth: str | None,
    grants: str | None,
    host: str,
    root_path: str,
) -> None:
    if (app is None) == (connection_env is None):
        raise click.UsageError("Give --app, or --connection-env and --application.")
    if (connection_env is None) != (application is None):
        raise click.UsageError("--connection-env and --application go together.")
    if (auth is None) != (grants is None):
        raise click.UsageError("--auth and --grants go together: who somebody is, and what he may do.")
    if auth is None and host not in LOOPBACK:
        raise click.UsageError(
            f"--host {host} can be reached from elsewhere, which needs --auth and --grants. "
            f"Without them it listens on {LOOPBACK[0]} alone."
        )
    if root_path and (not root_path.startswith("/") or root_path.endswith("/")):
        raise click.UsageError("--root-path begins with a slash and does not end with one: /runwick.")


def _check_extra() -> None:
    """Refuse once, whichever of its parts is missing."""
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        message = f"runwick web needs {', '.join(missing)}; pip install 'runwick[web]'"
        raise ConfigurationError([Problem("extra_missing", "runwick[web]", f"{message}.")])


@contextlib.contextmanager
def _desk(
    app: str | None, app_dir: str, connection_env: str | None, application: str | None
) -> Iterator[tuple[Desk, Store]]:
    """The desk of the application, or of its name in a store; and that store, closed at the end."""
    if app is not None:
        runwick = load(app, app_dir)
        _ = runwick.catalog  # everything that is wrong in it is told now
        with contextlib.closing(runwick):
            yield runwick.desk, runwick.store
        return
    assert application is not None, "the usage was checked"
    clock, ids = SystemClock(), SystemIds()
    url = named_store(None, app_dir, connection_env, connection_stdin=False, provider=None)
    with contextlib.closing(open_store(url, store_options(), clock, ids)) as store:
        yield Desk(application, lambda: store, ids, clock), store


def _management(
    desk: Desk, auth: str | None, grants: str | None, app_dir: Path
) -> "tuple[Management, OneTimeLink | None]":
    from runwick.management.web import Management, OneTimeLink

    if auth is None or grants is None:
        link = OneTimeLink(getpass.getuser())
        return Management(desk, schemes=[link.scheme], grants=link.grants), link
    granted: Any = locate_object(grants, app_dir)  # what is no function, the management refuses
    return Management(desk, schemes=_schemes(auth, app_dir), grants=granted), None


def _schemes(auth: str, app_dir: Path) -> "list[Scheme]":
    found: Any = locate_object(auth, app_dir)
    schemes = list(found) if isinstance(found, Iterable) else [found]
    for scheme in schemes:
        if not callable(getattr(scheme, "authenticate", None)):
            message = f"{auth} gives {type(scheme).__name__}, which is no scheme; BasicScheme(…) makes one."
            raise ConfigurationError([Problem("invalid_management", "--auth", message)])
    return schemes


def _unused(application: str, store: Store) -> list[str]:
    """That nobody has used the store under that name, in which there may be a mistake: the pages would show nothing,
    and nothing wrong."""
    has_jobs, has_workers = bool(store.run(store.names(application))), bool(store.run(store.workers(application)))
    if has_jobs or has_workers:
        return []
    return [f"nothing has been dispatched as {application} to this store yet, and no worker has served it"]


def _tell(application: str, store: Store, notes: Sequence[str], address: str, link: "OneTimeLink | None") -> None:
    click.echo(f"runwick web {__version__} · {application} · {store.description}")
    for note in notes:
        click.echo(f"note: {note}")
    click.echo(f"dashboard: {address}/ · API: {address}/api/v1/openapi.json · health: {address}/health/ready")
    if link is None:
        click.echo("sign in as --auth says · stop: Ctrl-C")
    else:
        click.echo("sign in with this link, once, within 10 minutes · stop: Ctrl-C")
        click.echo(f"  {address}{link.issue()}")
