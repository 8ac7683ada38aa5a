"""What every folder of tests can ask for, and where tests keep their files."""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from typing import Any, Final

import pytest

from scripts.servers.kept import ROOM_BYTES, SHARED_MEMORY
from tests.servers import bare_redis, database, empty_database, empty_redis, postgres, redis_server

__all__ = ["bare_redis", "database", "empty_database", "empty_redis", "postgres", "redis_server"]

FILES: Final = SHARED_MEMORY / f"runwick-tests-{os.getuid()}"
"""Where there is room, tests and all that they start keep temporary files here: nothing that a test proves depends on
how long a disk takes to write them out. Pytest removes those of tests that passed."""


def pytest_configure() -> None:
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= ROOM_BYTES:
        FILES.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(FILES)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """The processes that share the tests tell each other reports as UTF-8, which has no halves of surrogate pairs."""
    return _encodable((yield))


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_encodable(key): _encodable(member) for key, member in value.items()}
        case list() | tuple():
            return [_encodable(member) for member in value]
        case _:
            return value


@pytest.fixture(scope="session", autouse=True)
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers that tests kill leave their run files where nobody else looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNWICK_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        yield
