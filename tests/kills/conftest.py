"""The stores in which single processes are killed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.servers.kept import SHARED_MEMORY
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.conformance.places import Database
from tests.conformance.redis_places import RedisDatabase
from tests.kills.stands import PostgresStand, RedisStand, SqliteStand, Stand


@pytest.fixture(scope="session")
def killed_database(postgres: PostgresServer) -> Iterator[Database]:
    """Where the stands on PostgreSQL are, one after the other."""
    database = Database(postgres)
    yield database
    database.close()


@pytest.fixture(scope="session")
def killed_redis_database(redis_server: RedisServer) -> Iterator[RedisDatabase]:
    """Where the stands on Redis are."""
    database = RedisDatabase(redis_server)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    if request.param != "sqlite":
        stand: Stand = (
            PostgresStand(request.getfixturevalue("killed_database"))
            if request.param == "postgres"
            else RedisStand(request.getfixturevalue("killed_redis_database"))
        )
        yield stand
        stand.close()
        return
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="runwick-kills-", dir=place) as folder:
        stand = SqliteStand(Path(folder))
        yield stand
        stand.close()
