"""Sites for benchmarks: a folder of the test's own, or the server that all tests share."""

from pathlib import Path

import pytest

from scripts.benchmarks.figures import Assignment
from scripts.benchmarks.sites import POSTGRES, REDIS, SQLITE, PostgresSite, RedisSite, Site, SqliteSite
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer


@pytest.fixture(params=[SQLITE, POSTGRES, REDIS])
def assignment(request: pytest.FixtureRequest, tmp_path: Path) -> Assignment:
    """One round of very little, on every kind of store."""
    site: Site = SqliteSite(tmp_path) if request.param == SQLITE else request.getfixturevalue(f"{request.param}_site")
    return Assignment(store=request.param, site=site, jobs=20, seconds=0.1, work_ms=1, rounds=1, say=lambda _text: None)


@pytest.fixture
def postgres_site(postgres: PostgresServer) -> PostgresSite:
    return PostgresSite(postgres)


@pytest.fixture
def redis_site(redis_server: RedisServer) -> RedisSite:
    return RedisSite(redis_server)
