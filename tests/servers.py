"""The servers that the tests of one session share, and stores in them that are a test's own."""

import itertools
from collections.abc import Iterator
from typing import Final

import pytest

from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.migrate import migrate
from runwick.stores.redis import address as redis_address
from runwick.stores.redis import migrate as redis_migrate
from runwick.stores.redis.library import library
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import DATABASES, RedisServer

TEMPLATE: Final = "runwick_template"
"""A migrated database to copy: migrating anew for each test would take longer than the tests."""

_numbers = itertools.count(1)
_redis_numbers = itertools.cycle(range(1, DATABASES))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole session. A test that kills or pauses a server starts one of its own."""
    with PostgresServer() as server:
        prepare_template(server)
        yield server


def prepare_template(server: PostgresServer) -> None:
    """Create the migrated database that `fresh_database` copies."""
    migrate(address_of(server.create_database(TEMPLATE)), SystemClock(), SystemIds())


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database in which there is nothing."""
    name = f"empty_{next(_numbers)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a migrated database that is this test's own."""
    url = fresh_database(postgres)
    yield url
    postgres.drop_database(url.rpartition("/")[2])


def fresh_database(server: PostgresServer) -> str:
    """Copy the template; answers the URL of the copy, which is there until the server goes."""
    return server.create_database(f"fresh_{next(_numbers)}", TEMPLATE)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for the whole session. A test that kills or pauses a server starts one of its own."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def bare_redis(redis_server: RedisServer) -> str:
    """The URL of a database in which there is nothing."""
    number = next(_redis_numbers)
    redis_server.execute("FLUSHDB", database=number)
    return redis_server.url(number)


@pytest.fixture
def empty_redis(bare_redis: str) -> str:
    """The URL of a migrated store that is this test's own, in which there is nothing."""
    redis_migrate.migrate(redis_address.address_of(bare_redis), SystemIds(), library())
    return bare_redis
