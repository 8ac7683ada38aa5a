"""Where a URL points, and what a URL may not ask for."""

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from runwick.contracts.errors import ConfigurationError
from runwick.stores.postgres.address import address_of
from scripts.servers.postgres import PostgresServer


@pytest.mark.parametrize(
    ("url", "parameters", "shown"),
    [
        ("postgresql://db.example/app", {"host": "db.example"}, "db.example:5432/app"),
        ("postgres://db.example:6432/app", {"port": "6432"}, "db.example:6432/app"),
        ("postgresql://me:p%40%2F%3Fs@db/app", {"user": "me", "password": "p@/?s"}, "db:5432/app"),
        ("postgresql://db/a%20b%23c", {"dbname": "a b#c"}, "db:5432/a b#c"),
        ("postgresql://[::1]:5433/app", {"host": "::1", "port": "5433"}, "[::1]:5433/app"),
        ("postgresql:///app?host=/run/postgresql", {"host": "/run/postgresql"}, "/run/postgresql:5432/app"),
        ("postgresql:///app?hostaddr=10.0.0.7", {"hostaddr": "10.0.0.7"}, "10.0.0.7:5432/app"),
        ("postgresql://db/app?sslmode=verify-full", {"sslmode": "verify-full"}, "db:5432/app"),
        ("postgresql://db/app?target_session_attrs=primary", {"target_session_attrs": "primary"}, "db:5432/app"),
        ("postgresql://db/app?application_name=mailer", {"application_name": "mailer"}, "db:5432/app"),
    ],
)
def test_a_url_names_one_database(url: str, parameters: dict[str, str], shown: str) -> None:
    address = address_of(url)
    found = conninfo_to_dict(address.conninfo)
    assert {name: found[name] for name in parameters} == parameters
    assert address.shown == shown


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("postgresql://", "invalid_store", "names no host"),
        ("postgresql:///app", "invalid_store", "names no host"),
        ("postgresql://db", "invalid_store", "names no database"),
        ("postgresql://db/", "invalid_store", "names no database"),
        ("postgresql://db:0/app", "invalid_store", "from 1 to 65535"),
        ("postgresql://db:65536/app", "invalid_store", "from 1 to 65535"),
        ("postgresql://db:secret/app", "invalid_store", "from 1 to 65535"),
        ("postgresql://db/app?secret=1", "invalid_store", "only parameters that libpq knows"),
        ("postgresql://db/secret%zz", "invalid_store", "percent-encoded"),
        ("postgresql://db/secret%00", "invalid_store", "percent-encoded"),
        ("postgresql://me:se@cret@db/app", "invalid_store", "as %40"),
        ("postgresql://me:12/secret@db/app", "invalid_store", "and %2F"),
        ("postgresql://one,two/app", "invalid_policy", "several hosts"),
        ("postgresql://one:5432,two:5433/app", "invalid_policy", "several hosts"),
        ("postgresql://db/app?options=-c%20synchronous_commit%3Doff", "invalid_policy", "settings that Runwick relies"),
        ("postgresql://db/app?service=secret", "invalid_policy", "service is refused"),
        ("postgresql://db/app?replication=database", "invalid_policy", "replication is refused"),
        ("postgresql://db/app?load_balance_hosts=random", "invalid_policy", "the same primary"),
        ("postgresql://db/app?connect_timeout=3", "invalid_policy", "by PostgresOptions.request_timeout"),
        ("postgresql://db/app?client_encoding=LATIN1", "invalid_policy", "always UTF8"),
        ("postgresql://db/app?target_session_attrs=standby", "invalid_policy", "asks for a replica"),
    ],
)
def test_a_url_that_is_refused_and_not_repeated(url: str, code: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        address_of(url)
    assert refused.value.code == code
    assert said in str(refused.value)
    assert "cret" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_password_is_never_shown() -> None:
    address = address_of("postgresql://me:secret@db/app")
    assert "secret" in address.conninfo
    assert "secret" not in f"{address} {address!r} {[address]}"
    assert "me" not in address.shown


def test_the_environment_changes_neither_place_nor_settings(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGHOST": "nowhere.invalid",
        "PGPORT": "1",
        "PGDATABASE": "other",
        "PGOPTIONS": "-c synchronous_commit=off",
    }.items():
        monkeypatch.setenv(name, value)
    with psycopg.connect(address_of(postgres.url()).conninfo) as connection:
        row = connection.execute("SELECT current_database(), current_setting('synchronous_commit')").fetchone()
    assert row == ("postgres", "on")
