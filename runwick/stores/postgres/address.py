"""Where a PostgreSQL store lies: from the URL that names it to what libpq connects with. Nothing is connected here.

``postgresql://user:password@db.example:5432/app?sslmode=verify-full``, as libpq reads it; characters with a meaning in
URLs are percent-encoded. Host and database must be named: defaults that depend on the environment would let two
processes of one application work with two stores. A URL may hold a password, so no message repeats any of it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from runwick.contracts.errors import ConfigurationError, Problem

SCHEMES: Final = ("postgresql", "postgres")
PORT: Final = "5432"

_FORM: Final = "postgresql://USER:PASSWORD@HOST/DATABASE"
_REFUSED: Final = {
    "options": "it could change settings that Runwick relies on; set them for the role or the database",
    "service": "what stands in a service file cannot be checked here; write host and database into the URL",
    "replication": "a replication connection takes no jobs",
    "load_balance_hosts": "every connection must reach the same primary",
    "client_encoding": "it is always UTF8",
    "connect_timeout": "connecting is limited like every call, by PostgresOptions.request_timeout",
}
"""Parameters of libpq that would break a promise, and why."""

_PRIMARY: Final = frozenset({"any", "read-write", "primary"})


NETWORK: Final = {
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""When the kernel gives up a silent network; what the URL says goes before."""


class Address(NamedTuple):
    """One database on one server."""

    conninfo: str
    """All that libpq needs, the password too: never to be shown."""
    shown: str
    """The same for people: ``db.example:5432/app``."""

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def address_of(url: str) -> Address:
    """The database that `url` names.

    Raises:
        ConfigurationError: ``invalid_store`` for what is not such a URL, ``invalid_policy`` for a parameter that
            cannot keep jobs safe. The message does not repeat the URL.
    """
    _refuse_misread_passwords(url)
    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        raise _refusal(
            "invalid_store",
            f"PostgreSQL cannot read the URL; write {_FORM}, with characters that have a meaning in URLs "
            "percent-encoded and only parameters that libpq knows",
        ) from None
    _refuse_unsafe(parameters)
    host = parameters.get("host") or parameters.get("hostaddr") or ""
    port = parameters.setdefault("port", PORT)
    database = parameters.get("dbname", "")
    if not host:
        raise _refusal("invalid_store", f"the URL names no host; write {_FORM}")
    if not database:
        raise _refusal("invalid_store", f"the URL names no database; write {_FORM}")
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise _refusal("invalid_store", f"the port is no number from 1 to 65535; write {_FORM}")
    parameters["options"] = ""  # said, so that no environment variable fills it in
    shown_host = f"[{host}]" if ":" in host else host
    return Address(make_conninfo(**parameters), f"{shown_host}:{port}/{database}")


def _refuse_misread_passwords(url: str) -> None:
    """libpq takes a bare @ or / of a password for the end of it; what follows would be shown as host or database."""
    authority, _, path = url.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in path.partition("?")[0]:
        raise _refusal("invalid_store", "write @ and / in user, password and database percent-encoded, as %40 and %2F")


def _refuse_unsafe(parameters: Mapping[str, str]) -> None:
    for name, why in _REFUSED.items():
        if name in parameters:
            raise _refusal("invalid_policy", f"the parameter {name} is refused: {why}; remove it")
    if any("," in parameters.get(name, "") for name in ("host", "hostaddr", "port")):
        raise _refusal(
            "invalid_policy", "the URL names several hosts; name the primary alone, for two servers are two stores"
        )
    if parameters.get("target_session_attrs", "any") not in _PRIMARY:
        raise _refusal(
            "invalid_policy", "target_session_attrs asks for a replica, where nothing can be written; remove it"
        )


def _refusal(code: str, text: str) -> ConfigurationError:
    return ConfigurationError([Problem(code, "store", text)])
