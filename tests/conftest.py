"""What every folder of tests can ask for."""

from collections.abc import Iterator

import pytest

from tests.servers import database, empty_database, postgres

__all__ = ["database", "empty_database", "postgres"]


@pytest.fixture(scope="session", autouse=True)
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers that tests kill leave their run files where nobody else looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNWICK_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        yield
