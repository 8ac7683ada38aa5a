"""A directory of its own for each test, where it may write an application that is forgotten afterwards."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from runwick import Runwick
from tests.cli.ground import SECRET, SHOP, run, served, shop

WriteApplication = Callable[[str], str]
"""From a module's source to its name."""


@pytest.fixture
def write_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteApplication]:
    """Write a module into the current directory, which is the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNWICK_STORE", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = "application_of_the_test"

    def write(source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source)
        return name

    yield write
    sys.modules.pop(name, None)


class Place(NamedTuple):
    """Where commands work, and the application there."""

    rw: Runwick
    options: tuple[str, ...]


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings of whoever runs it."""
    monkeypatch.setenv("RUNWICK_CONFIG", str(tmp_path / "settings" / "config.json"))
    for name in ("RUNWICK_SECRET", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def sqlite_place(write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """With ``--app``, on a file."""
    monkeypatch.setenv("RUNWICK_STORE", f"sqlite:///{tmp_path}/shop.db")
    app = write_application(SHOP)
    run("migrate", "--app", app)
    rw: Runwick = importlib.import_module(app).rw
    return Place(rw, ("--app", app))


@pytest.fixture
def postgres_place(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """With ``--connection-env``, without the application's code."""
    monkeypatch.setenv("STORE_OF_THE_TEST", database)
    rw = shop(database)
    yield Place(rw, ("--connection-env", "STORE_OF_THE_TEST", "--application", "shop"))
    rw.close()


@pytest.fixture
def redis_place(empty_redis: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The same on Redis."""
    monkeypatch.setenv("STORE_OF_THE_TEST", empty_redis)
    rw = shop(empty_redis)
    yield Place(rw, ("--connection-env", "STORE_OF_THE_TEST", "--application", "shop"))
    rw.close()


@pytest.fixture
def server_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """With a context, over the API."""
    rw = shop(f"sqlite:///{tmp_path}/shop.db")
    rw.migrate()
    monkeypatch.setenv("SECRET_OF_THE_TEST", SECRET)
    with served(rw) as address:
        run(
            "context",
            "add",
            "prod",
            "--url",
            address,
            "--auth",
            "basic",
            "--user",
            "ops",
            "--secret-env",
            "SECRET_OF_THE_TEST",
        )
        yield Place(rw, ())
    rw.close()


@pytest.fixture(params=["sqlite", "postgres", "redis", "server"])
def place(request: pytest.FixtureRequest) -> Place:
    """Each of them."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found
