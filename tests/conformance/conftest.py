"""Every test of this suite runs once per store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.ground import Bench, memory_bench, sqlite_bench


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = memory_bench() if request.param == "memory" else sqlite_bench(tmp_path)
    yield bench
    bench.store.close()
