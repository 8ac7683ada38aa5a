"""Where a Redis store lies: from the URL that names it to what redis-py connects with. Nothing is connected here.

``redis://user:password@redis.example:6379/0``, ``rediss://`` for TLS, ``redis+unix:///run/redis.sock?db=0`` for a
socket; characters with a meaning in URLs are percent-encoded. It names one server: what chooses among several is
refused, for a replica that takes over may lack confirmed jobs. A URL may hold a password, so no message repeats any of
it.
"""

import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection

from runwick.contracts.errors import ConfigurationError, Problem

SCHEMES: Final = ("redis", "rediss", "redis+unix")
MANY: Final = ("redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
"""Schemes of clients that choose a server themselves; they are known in order to be refused."""
PORT: Final = 6379

_FORM: Final = "redis://USER:PASSWORD@HOST:6379/0"
_UNIX_FORM: Final = "redis+unix:///PATH?db=0"
_TLS: Final = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_CERT_REQS: Final = ("required", "optional", "none")
_PORT_MAX: Final = (1 << 16) - 1


class Address(NamedTuple):
    """One database on one server."""

    connecting: Callable[..., Any]
    """Makes a connection to it, not opened yet."""
    parameters: Mapping[str, Any]
    """What that needs, the password too: never to be shown."""
    shown: str
    """The same for people: ``redis.example:6379/0``."""

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def address_of(url: str) -> Address:
    """The database that `url` names.

    Raises:
        ConfigurationError: ``invalid_store`` for what is not such a URL, ``invalid_policy`` for a parameter that is not
            taken, ``topology_unsupported`` for what names several servers. The message does not repeat the URL.
    """
    scheme, _, rest = url.partition("://")
    if scheme in MANY or "," in rest.partition("/")[0].rpartition("@")[2]:
        raise _refusal(
            "topology_unsupported",
            "the URL names several servers; Redis stores live on one standalone primary and follow no failover; "
            f"write {_FORM}",
        )
    _refuse_misread_passwords(rest)
    parts = _parts(url)
    parameters = {
        name: urllib.parse.unquote(value)
        for name, value in (("username", parts.username), ("password", parts.password))
        if value
    }
    query = _query(parts.query, ("db",) if scheme == "redis+unix" else _TLS if scheme == "rediss" else ())
    if scheme == "redis+unix":
        return _socket(parts, parameters, query)
    host, port = _host(parts), _port(parts)
    database = _database(parts.path.removeprefix("/"))
    if query.get("ssl_cert_reqs", "required") not in _CERT_REQS:
        raise _refusal("invalid_policy", f"ssl_cert_reqs is none of {', '.join(_CERT_REQS)}")
    shown_host = f"[{host}]" if ":" in host else host
    return Address(
        SSLConnection if scheme == "rediss" else Connection,
        {**parameters, **query, "host": host, "port": port, "db": database},
        f"{shown_host}:{port}/{database}",
    )


def _refuse_misread_passwords(rest: str) -> None:
    """A bare @, /, ? or # of a password would be taken for the end of it; what follows would be shown as host."""
    before, at, behind = rest.partition("@")
    if "@" in behind or "#" in rest or (at and any(character in before for character in "/?")):
        raise _refusal(
            "invalid_store", "write @, /, ? and # in what the URL says percent-encoded, as %40, %2F, %3F and %23"
        )


def _socket(parts: urllib.parse.SplitResult, parameters: Mapping[str, str], query: Mapping[str, str]) -> Address:
    path = urllib.parse.unquote(parts.path)
    if parts.hostname or len(path) < len("/x"):
        raise _refusal("invalid_store", f"the URL names no socket; write {_UNIX_FORM}")
    database = _database(query.get("db", ""))
    return Address(UnixDomainSocketConnection, {**parameters, "path": path, "db": database}, f"{path}/{database}")


def _parts(url: str) -> urllib.parse.SplitResult:
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:
        raise _refusal("invalid_store", f"the URL names no host; write {_FORM}") from None


def _host(parts: urllib.parse.SplitResult) -> str:
    if not parts.hostname:
        raise _refusal("invalid_store", f"the URL names no host; write {_FORM}")
    return urllib.parse.unquote(parts.hostname)


def _port(parts: urllib.parse.SplitResult) -> int:
    try:
        port = PORT if parts.port is None else parts.port
    except ValueError:
        port = 0
    if not 0 < port <= _PORT_MAX:
        raise _refusal("invalid_store", f"the port is no number from 1 to {_PORT_MAX}; write {_FORM}")
    return port


def _database(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal() and len(text) < len("10000")):
        raise _refusal("invalid_store", f"the database is no number; write {_FORM} or {_UNIX_FORM}")
    return int(text or "0")


def _query(text: str, known: tuple[str, ...]) -> dict[str, str]:
    try:
        pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    except ValueError:
        raise _refusal("invalid_store", "the parameters are not written as NAME=VALUE&NAME=VALUE") from None
    given = dict(pairs)
    for name in given:
        if name not in known:
            taken = f"it takes {', '.join(known)}" if known else "it takes none"
            raise _refusal("invalid_policy", f"the parameter {name[:64]} is refused: {taken}; remove it")
    if len(given) < len(pairs):
        raise _refusal("invalid_policy", "a parameter is given twice; give it once")
    return given


def _refusal(code: str, text: str) -> ConfigurationError:
    return ConfigurationError([Problem(code, "store", text)])
