"""Sites for benchmarks: a folder of the test's own, or the server that all tests share."""

from pathlib import Path

import pytest

from scripts.benchmarks.figures import Assignment
from scripts.benchmarks.sites import POSTGRES, SQLITE, PostgresSite, Site, SqliteSite
from scripts.servers.postgres import PostgresServer


@pytest.fixture(params=[SQLITE, POSTGRES])
def assignment(request: pytest.FixtureRequest, tmp_path: Path) -> Assignment:
    """One round of very little, on either kind of store."""
    site: Site = SqliteSite(tmp_path) if request.param == SQLITE else request.getfixturevalue("postgres_site")
    return Assignment(store=request.param, site=site, jobs=20, seconds=0.1, work_ms=1, rounds=1, say=lambda _text: None)


@pytest.fixture
def postgres_site(postgres: PostgresServer) -> PostgresSite:
    return PostgresSite(postgres)
