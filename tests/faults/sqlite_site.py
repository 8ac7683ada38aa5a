"""A file in which every act has something to do, copies of it to spoil, and what is in them afterwards."""

import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runwick.config.options import SqliteOptions
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeClock
from tests.conformance.ground import APPLICATION, sqlite_bench
from tests.faults.stage import Make, Stage, staged

Opened = Callable[[Path], tuple[Callable[[], Any], Callable[[], None]]]
"""Makes an operation on a file, to be run as often as needed, and what closes it."""
State = dict[str, list[tuple[Any, ...]]]


class SameIds:
    """The ids of a second try are those of the first, so that the files can be compared."""

    def ordered(self) -> bytes:
        return (7).to_bytes(16)

    def secret(self) -> bytes:
        return (8).to_bytes(16)


class Site:
    """A file to begin from, and copies of it to spoil."""

    def __init__(self, folder: Path) -> None:
        self.start = folder / "start.db"
        self.clock = FakeClock()
        self._copies = (folder / f"{number}.db" for number in itertools.count())

    def copy(self) -> Path:
        return Path(shutil.copy(self.start, next(self._copies)))

    def store(self, path: Path) -> SqliteStore:
        return SqliteStore(path, options=SqliteOptions(), clock=self.clock, ids=SameIds())


@pytest.fixture
def site() -> Iterator[Site]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="runwick-faults-", dir=memory if memory.is_dir() else None) as folder:
        yield Site(Path(folder))


@pytest.fixture
def stage(site: Site, tmp_path: Path) -> Stage:
    bench = sqlite_bench(tmp_path)
    stage = staged(bench)
    bench.store.close()
    site.clock = bench.clock
    shutil.copy(tmp_path / "jobs.db", site.start)
    return stage


def state_of(path: Path) -> State:
    """All that is in the file."""
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'runwick%'").fetchall()
        rows = {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
            for name, text in tables
            if text.startswith("CREATE TABLE")
        }
        return {"schema": sorted(tables), **rows}
    finally:
        connection.close()


class Undisturbed(NamedTuple):
    """What an operation does when nothing fails."""

    before: State
    first: Any
    """Its answer."""
    after: State
    second: Any
    """Its answer when it is sent again, which changes nothing."""


def undisturbed(site: Site, opened: Opened) -> Undisturbed:
    path = site.copy()
    before = state_of(path)
    run, close = opened(path)
    first, after, second = run(), state_of(path), run()
    assert state_of(path) == after
    close()
    return Undisturbed(before, first, after, second)


def on_open_store(site: Site, make: Make) -> Opened:
    """An act on a store that is open already."""

    def opened(path: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
        store = site.store(path)
        store.check()
        store.run(store.resolve(APPLICATION, bytes(16)))  # so that a reader is open too
        return lambda: store.run(make(store)), store.close

    return opened
