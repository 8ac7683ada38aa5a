"""Where a URL points, and what a URL may not ask for."""

from typing import Any

import pytest
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection

from runwick.contracts.errors import ConfigurationError
from runwick.stores.redis.address import address_of


@pytest.mark.parametrize(
    ("url", "kind", "parameters", "shown"),
    [
        ("redis://db.example", Connection, {"host": "db.example", "port": 6379, "db": 0}, "db.example:6379/0"),
        ("redis://db.example/", Connection, {"host": "db.example", "db": 0}, "db.example:6379/0"),
        ("redis://db.example:6380/3", Connection, {"port": 6380, "db": 3}, "db.example:6380/3"),
        ("redis://:p%40%2F%3Fs@db/1", Connection, {"password": "p@/?s"}, "db:6379/1"),
        ("redis://me:secret@db", Connection, {"username": "me", "password": "secret"}, "db:6379/0"),
        ("redis://[::1]:7000/2", Connection, {"host": "::1", "port": 7000, "db": 2}, "[::1]:7000/2"),
        ("rediss://db", SSLConnection, {"host": "db"}, "db:6379/0"),
        (
            "rediss://db?ssl_ca_certs=/etc/ca%20.pem&ssl_certfile=/c&ssl_keyfile=/k&ssl_cert_reqs=required",
            SSLConnection,
            {"ssl_ca_certs": "/etc/ca .pem", "ssl_certfile": "/c", "ssl_keyfile": "/k", "ssl_cert_reqs": "required"},
            "db:6379/0",
        ),
        ("redis+unix:///run/r%20s", UnixDomainSocketConnection, {"path": "/run/r s", "db": 0}, "/run/r s/0"),
        (
            "redis+unix://me:secret@/run/redis?db=4",
            UnixDomainSocketConnection,
            {"path": "/run/redis", "db": 4, "username": "me", "password": "secret"},
            "/run/redis/4",
        ),
    ],
)
def test_a_url_names_one_database(url: str, kind: type, parameters: dict[str, Any], shown: str) -> None:
    address = address_of(url)
    assert address.connecting is kind
    assert {name: address.parameters[name] for name in parameters} == parameters
    assert address.shown == shown
    assert repr(address) == f"Address({shown})"


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("redis://", "invalid_store", "names no host"),
        ("redis:///3", "invalid_store", "names no host"),
        ("redis://[::1/3", "invalid_store", "names no host"),
        ("redis://db:0", "invalid_store", "from 1 to 65535"),
        ("redis://db:65536", "invalid_store", "from 1 to 65535"),
        ("redis://db:secret", "invalid_store", "from 1 to 65535"),
        ("redis://db/secret", "invalid_store", "the database is no number"),
        ("redis://db/-1", "invalid_store", "the database is no number"),
        ("redis://db/1/2", "invalid_store", "the database is no number"),
        ("redis://db/٣", "invalid_store", "the database is no number"),
        ("redis://me:se@cret@db", "invalid_store", "as %40"),
        ("redis://me:12/secret@db", "invalid_store", "%2F"),
        ("redis://me:se#cret@db", "invalid_store", "%23"),
        ("redis://me:se?cret@db", "invalid_store", "%3F"),
        ("redis+unix://", "invalid_store", "names no socket"),
        ("redis+unix:///", "invalid_store", "names no socket"),
        ("redis+unix://run/redis", "invalid_store", "names no socket"),
        ("redis+unix:///run/redis?db=secret", "invalid_store", "the database is no number"),
        ("redis://db/0?secret", "invalid_store", "NAME=VALUE"),
        ("redis://db/0?retry_on_timeout=1", "invalid_policy", "retry_on_timeout is refused"),
        ("redis://db/0?ssl_cert_reqs=none", "invalid_policy", "ssl_cert_reqs is refused"),
        ("rediss://db/0?socket_timeout=1", "invalid_policy", "socket_timeout is refused"),
        ("rediss://db/0?ssl_cert_reqs=secret", "invalid_policy", "none of required, optional, none"),
        ("rediss://db/0?ssl_keyfile=secret&ssl_keyfile=b", "invalid_policy", "given twice"),
        ("redis://one,two/0", "topology_unsupported", "several servers"),
        ("redis://:secret@one:6379,two:6380/0", "topology_unsupported", "several servers"),
        ("redis+sentinel://secret@one/mymaster/0", "topology_unsupported", "several servers"),
        ("rediss+cluster://secret@one", "topology_unsupported", "several servers"),
    ],
)
def test_a_url_that_is_refused_and_not_repeated(url: str, code: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        address_of(url)
    assert refused.value.code == code
    assert said in str(refused.value)
    assert "cret" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
