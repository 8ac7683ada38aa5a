"""Stores in files, and the smallest acts there are: the driver knows nothing of jobs, so these do."""

import datetime
from collections.abc import Generator
from pathlib import Path
from typing import Any

from runwick.config.options import SqliteOptions
from runwick.contracts.stores import Act
from runwick.stores.sqlite.clock import StoreClock
from runwick.stores.sqlite.driver import Driver
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.steps import Step
from tests.ambient import FakeClock, FakeIds

PAGE_BYTES = 4096


def migrated(folder: Path) -> Path:
    """A new store's file in `folder`."""
    path = folder / "jobs.db"
    migrate(path, FakeClock(), FakeIds())
    return path


def a_driver(path: Path, *, busy_timeout_ms: int = 20_000, readers: int = 2) -> Driver:
    timeout = datetime.timedelta(milliseconds=busy_timeout_ms)
    options = SqliteOptions(writer_busy_timeout=timeout, reader_threads=readers)
    return Driver(path, options, Gate(path, StoreClock(FakeClock())))


def add(*names: str) -> Act[int]:
    """Write one row for each name; answers how many were read back."""

    def steps() -> Generator[Step, Any, int]:
        read = 0
        for name in names:
            read += len((yield Step("intern_application", (name,))))
        return read

    return Act("add", steps)


def add_pages(mark: str, pages: int) -> Act[int]:
    """Write one row that fills so many pages."""
    return add(mark.ljust(pages * PAGE_BYTES, "."))


def names() -> Act[set[str]]:
    """What `add` has written, without filling."""

    def steps() -> Generator[Step, Any, set[str]]:
        rows = yield Step("interned_applications", (0,))
        return {name.rstrip(".") for _, name in rows}

    return Act("names", steps, reads_only=True)
