"""Saved servers: where each is, how to sign in there, and the name of the environment variable that holds the secret.
The secret itself is never written here.
"""

import contextlib
import ipaddress
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import click
import msgspec

from runwick.contracts.errors import ConfigurationError, InvalidArgument, Problem
from runwick.contracts.names import name_problem

CONFIG: Final = "RUNWICK_CONFIG"
"""The environment variable that names the file."""

Auth = Literal["basic", "bearer"]


class Context(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """One server."""

    url: str
    """The path under which the API is mounted, without ``/v1``."""
    auth: Auth = "bearer"
    user: str | None = None
    """With ``basic``."""
    secret_env: str | None = None
    """The environment variable that holds password or token."""


class Contexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    current: str | None = None
    contexts: Mapping[str, Context] = {}


def config_path() -> Path:
    """Where the file is: ``$RUNWICK_CONFIG``, or ``runwick/config.json`` among the user's settings."""
    said = os.environ.get(CONFIG)
    return Path(said) if said else Path(click.get_app_dir("runwick")) / "config.json"


def read_contexts() -> Contexts:
    """The saved servers; none where there is no file.

    Raises:
        ConfigurationError: the file cannot be read, or holds something else (code ``invalid_context``).
    """
    path = config_path()
    try:
        contexts = msgspec.json.decode(path.read_bytes(), type=Contexts)
        for each in contexts.contexts.values():
            checked_context(each)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise _refusal(path, f"it cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, InvalidArgument) as error:
        raise _refusal(path, f"it is no file of contexts: {error}") from None
    return contexts


def write_contexts(contexts: Contexts) -> None:
    """Replace the file as a whole. Only its owner may read it.

    Raises:
        ConfigurationError: it cannot be written (code ``invalid_context``).
    """
    path = config_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from the start
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(contexts)) + b"\n")
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise _refusal(path, f"it cannot be written: {error.strerror}") from None


def checked_context(context: Context) -> Context:
    """The context, if one can work with it.

    Raises:
        InvalidArgument: the URL is none that a secret may go to, or the user does not go with the sign-in (code
            ``invalid_argument``).
    """
    check_url(context.url)
    if (context.auth == "basic") is (context.user is None):
        raise _wrong("a user goes with basic sign-in, and only with that")
    if context.user is not None and (not context.user or ":" in context.user):
        raise _wrong(f"{context.user!r} is no user for basic sign-in")
    if context.secret_env is not None and not context.secret_env.isidentifier():
        raise _wrong("secret-env is the name of an environment variable, never the secret itself")
    return context


def check_name(name: str) -> str:
    """A context's name.

    Raises:
        InvalidArgument: it is none (code ``invalid_argument``).
    """
    if (problem := name_problem(name)) is not None:
        raise _wrong(f"{name!r} is no name of a context: {problem}")
    return name


def check_url(url: str) -> None:
    """Go on only with an address to which a secret may be sent: encrypted, or on this very machine.

    Raises:
        InvalidArgument: it is none (code ``invalid_argument``). The message does not repeat it, for it may hold a
            password.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _wrong("the URL cannot be read; write https://HOST/PATH") from None
    if parts.username is not None or parts.password is not None:
        raise _wrong("the URL holds a user or password; give --user, and the secret by an environment variable")
    if not host or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise _wrong("the URL is no address of an API; write https://HOST/PATH")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise _wrong("the URL is neither https:// nor http:// on this machine (localhost), and secrets go nowhere else")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _wrong(message: str) -> InvalidArgument:
    return InvalidArgument("invalid_argument", message)


def _refusal(path: Path, sentence: str) -> ConfigurationError:
    return ConfigurationError([Problem("invalid_context", str(path), f"{sentence}.")])
