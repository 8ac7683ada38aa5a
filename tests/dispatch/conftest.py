"""Applications on real stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick import Runwick
from tests.dispatch.jobs import application
from tests.servers import fresh_database


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store without jobs, migrated."""
    if request.param == "postgres":
        return fresh_database(request.getfixturevalue("postgres"))
    if request.param == "redis":
        return str(request.getfixturevalue("empty_redis"))
    url = f"sqlite:///{tmp_path}/jobs.db"
    Runwick("setup", store=url).migrate()
    return url


@pytest.fixture
def rw(store_url: str) -> Iterator[Runwick]:
    app = application(store_url)
    yield app
    app.close()
