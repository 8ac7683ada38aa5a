"""One store after the other in which everything has something to do, and processes that work on it and are killed.

Time is the test's and moves only when the test moves it: a process that is forked has the time of then, and servers
keep it themselves.
"""

import functools
import itertools
import os
import signal
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from runwick.runtime import crossings
from runwick.stores.sqlite.store import SqliteStore
from tests.conformance.ground import APPLICATION, Bench, sqlite_bench
from tests.conformance.places import Database
from tests.conformance.redis_places import RedisDatabase
from tests.sqlite.processes import Child, Peer

T = TypeVar("T")

KILLED: Final = -signal.SIGKILL


class Stand(ABC):
    """Makes stores; to be closed."""

    crossings: tuple[str, ...]
    """Where an act can be killed."""

    def __init__(self) -> None:
        self._bench: Bench | None = None

    def bench(self) -> Bench:
        """An empty store. The one before is closed."""
        self.close()
        self._bench = self._make()
        return self._bench

    @property
    def standing(self) -> Bench:
        """The store made last."""
        assert self._bench is not None
        return self._bench

    def close(self) -> None:
        if self._bench is not None:
            self._bench.store.close()

    @abstractmethod
    def _make(self) -> Bench: ...


class Tables(Stand):
    """Stores that can be asked by statements."""

    @abstractmethod
    def rows(self, sqlite: str, postgres: str) -> list[tuple[Any, ...]]:
        """What is in the tables of the store made last, as this statement says."""


class SqliteStand(Tables):
    """Files in one folder."""

    crossings = ("sqlite.committed",)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folders = (folder / str(number) for number in itertools.count())

    def rows(self, sqlite: str, postgres: str) -> list[tuple[Any, ...]]:
        assert self._bench is not None
        assert isinstance(self._bench.store, SqliteStore)
        connection = sqlite3.connect(self._bench.store.path)
        try:
            return connection.execute(sqlite).fetchall()
        finally:
            connection.close()

    def _make(self) -> Bench:
        folder = next(self._folders)
        folder.mkdir()
        return sqlite_bench(folder)


class PostgresStand(Tables):
    """One database, emptied for each."""

    crossings = ("postgres.sending", "postgres.answered")

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database: Final = database

    def rows(self, sqlite: str, postgres: str) -> list[tuple[Any, ...]]:
        return self.database.execute(postgres)

    def _make(self) -> Bench:
        return self.database.bench()


class RedisStand(Stand):
    """One database, emptied for each."""

    crossings = ("redis.sending", "redis.answered")

    def __init__(self, database: RedisDatabase) -> None:
        super().__init__()
        self._database = database

    def kept(self, command_id: bytes) -> bool:
        """Whether the store made last knows what a command was answered."""
        return bool(self._database.client.hexists(f"rw:{{{APPLICATION}}}:commands", command_id))

    def _make(self) -> Bench:
        return self._database.bench()


def elsewhere(work: Callable[[], object]) -> Any:
    """What `work` answers in a process that was forked for it and ends with it; as JSON has it."""
    with Child(lambda peer: peer.say(work())) as child:
        return child.hear()


def killed_at(crossing: str, nth: int, work: Callable[[], object]) -> bool:
    """Do `work` in a process that is killed when it comes to a crossing for the n-th time; False when it never does."""

    def live(peer: Peer) -> None:
        times = itertools.count(1)
        crossings.on(crossing, lambda: os.kill(os.getpid(), signal.SIGKILL) if next(times) == nth else None)
        work()

    child = Child(live)
    try:
        code = child.end()
    finally:
        child.close()
    assert code in (0, KILLED)
    return code == KILLED


def each_kill(stand: Stand, make: Callable[[], T], work: Callable[[T], object]) -> Iterator[tuple[str, int, T]]:
    """Do the work once for each time that it comes to a crossing, in a process that is killed there.

    Args:
        stand: says where the crossings are.
        make: makes what the work is about, in a new store.
        work: what is done to it.

    Yields:
        After each death the crossing, for the how manieth time the work had come there, and what it was about.
    """
    for crossing in stand.crossings:
        for nth in itertools.count(1):
            made = make()
            if not killed_at(crossing, nth, functools.partial(work, made)):
                assert nth > 1, f"nothing came to {crossing}"
                break
            yield crossing, nth, made
