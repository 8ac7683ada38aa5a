"""The stores in which single processes are killed."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.servers.postgres import SHARED_MEMORY, PostgresServer
from tests.conformance.places import Database
from tests.kills.stands import PostgresStand, SqliteStand, Stand


@pytest.fixture(scope="session")
def killed_database(postgres: PostgresServer) -> Iterator[Database]:
    """Where the stands on PostgreSQL are, one after the other."""
    database = Database(postgres)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    if request.param == "postgres":
        stand: Stand = PostgresStand(request.getfixturevalue("killed_database"))
        yield stand
        stand.close()
        return
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="runwick-kills-", dir=place) as folder:
        stand = SqliteStand(Path(folder))
        yield stand
        stand.close()
