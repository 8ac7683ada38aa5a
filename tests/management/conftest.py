"""The operators' desk, in front of each store."""

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import bench, postgres_database, redis_database
from tests.conformance.ground import Bench, memory_bench
from tests.faults.failing_sqlite import saboteur
from tests.management.counter import Counter, opened

__all__ = ["bench", "postgres_database", "redis_database", "saboteur"]


@pytest.fixture
def counter(bench: Bench) -> Iterator[Counter]:
    """On each store."""
    with opened(bench) as counter:
        yield counter


@pytest.fixture
def one() -> Iterator[Counter]:
    """On the store in memory alone: for what no store decides."""
    with opened(memory_bench()) as counter:
        yield counter
