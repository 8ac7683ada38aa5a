"""The store that a command works on directly: ``--connection-env``, ``--connection-stdin`` or ``--app``.

The connection comes from an environment variable, standard input or the application, never from an argument, which
every user of the machine could read; and it is never printed.
"""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from runwick.app.stores import MEMORY, POSTGRES, REDIS, SQLITE, provider_of, resolve_url
from runwick.cli.application import app_dir_option, load
from runwick.config.options import PostgresOptions, RedisOptions, SqliteOptions, StoreOptions
from runwick.config.sources import read_environment
from runwick.contracts.errors import ConfigurationError, Problem

URL_MAX_CHARACTERS: Final = 64 * 1024


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name a store; what they name reaches it as its argument `url`."""

    @functools.wraps(command)
    def with_url(
        *,
        app: str | None,
        app_dir: str,
        connection_env: str | None,
        connection_stdin: bool,
        provider: str | None,
        **others: Any,
    ) -> Any:
        return command(url=named_store(app, app_dir, connection_env, connection_stdin, provider), **others)

    options = (
        click.option("--app", metavar="MODULE[:ATTRIBUTE]", help="The store of this application."),
        app_dir_option,
        click.option("--connection-env", metavar="NAME", help="The environment variable that holds the store's URL."),
        click.option("--connection-stdin", is_flag=True, help="Read the store's URL from standard input."),
        click.option(
            "--provider",
            type=click.Choice([POSTGRES, REDIS, SQLITE]),
            help="Refuse a store of another kind than this; the URL says by itself which it is.",
        ),
    )
    decorated: Callable[..., Any] = with_url
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def named_store(
    app: str | None, app_dir: str, connection_env: str | None, connection_stdin: bool, provider: str | None
) -> str:
    """The URL of the store that the options name, a path in it made absolute.

    Raises:
        click.UsageError: not exactly one of them is given, or the store is of another kind than ``--provider``.
        ConfigurationError: there is no URL (code ``missing_store``), or it is no store's (``invalid_store``).
    """
    if (app is not None) + (connection_env is not None) + connection_stdin != 1:
        raise click.UsageError("Give exactly one of --app, --connection-env and --connection-stdin.")
    url = load(app, app_dir).store_url if app is not None else _given_url(connection_env)
    kind = provider_of(url)
    if provider is not None and kind != provider:
        raise click.UsageError(f"--provider is {provider}, but the URL names a store of the kind {kind}.")
    if kind == MEMORY and app is None:
        raise _refusal("invalid_store", "a store in memory belongs to its process; there is nothing to work on.")
    return url


def store_options() -> StoreOptions:
    """What the environment says of stores.

    Raises:
        ConfigurationError: with everything that is wrong in it.
    """
    environment = read_environment(os.environ)
    if environment.problems:
        raise ConfigurationError(environment.problems)
    return StoreOptions(
        sqlite=environment.applied_to(SqliteOptions()),
        postgres=environment.applied_to(PostgresOptions()),
        redis=environment.applied_to(RedisOptions()),
    )


def _given_url(variable: str | None) -> str:
    """The URL in an environment variable, or on standard input without one."""
    if variable is None:
        text, source = sys.stdin.read(URL_MAX_CHARACTERS), "standard input"
    else:
        text, source = os.environ.get(variable, ""), f"the environment variable {variable}"
    url = text.strip()
    if not url:
        raise _refusal(
            "missing_store",
            f"{source} holds no URL; use postgresql://HOST/DATABASE, redis://HOST or sqlite:///FILE.",
        )
    if len(url.splitlines()) > 1:
        raise _refusal("invalid_store", f"{source} holds several lines; give the URL alone.")
    return resolve_url(url, Path.cwd())


def _refusal(code: str, sentence: str) -> ConfigurationError:
    return ConfigurationError([Problem(code, "store", sentence)])
