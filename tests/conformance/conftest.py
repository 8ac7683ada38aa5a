"""Every test of this suite runs once per store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.conformance.ground import Bench, memory_bench, sqlite_bench
from tests.conformance.places import Database
from tests.conformance.redis_places import RedisDatabase


@pytest.fixture(scope="session")
def postgres_database(postgres: PostgresServer) -> Iterator[Database]:
    """Where this suite's PostgreSQL benches are."""
    database = Database(postgres)
    yield database
    database.close()


@pytest.fixture(scope="session")
def redis_database(redis_server: RedisServer) -> Iterator[RedisDatabase]:
    """Where this suite's Redis benches are."""
    database = RedisDatabase(redis_server)
    yield database
    database.close()


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    match request.param:
        case "memory":
            bench = memory_bench()
        case "sqlite":
            bench = sqlite_bench(tmp_path)
        case "postgres":
            bench = request.getfixturevalue("postgres_database").bench()
        case "redis":
            bench = request.getfixturevalue("redis_database").bench()
    yield bench
    bench.store.close()
