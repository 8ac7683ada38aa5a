"""Writers of an SQLite file that are killed in the middle of their transactions: ``python -m tests.chaos.writers``.

One process that has imported everything forks a writer after the other. Each plays its part of a rehearsal on a real
clock and is killed by itself, at a statement that the dice chose::

    fork ─▶ writer: open · play … BEGIN IMMEDIATE · statement · ☠        its book and marks are on the disk
     └─ wait ─▶ the next one, until as many as were asked for have died
"""

import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from runwick.config.options import SqliteOptions
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeClock
from tests.chaos.book import Book, read_book
from tests.chaos.history import Mark
from tests.chaos.rehearsal import Rehearsal
from tests.conformance.ground import Bench

STATEMENTS: Final = 400
"""A writer dies within so many statements of its transactions."""
_STEPS: Final = 10_000


class RealClock(FakeClock):
    """A clock that nobody moves: time passes instead."""

    def __init__(self) -> None:
        super().__init__()
        self._system = SystemClock()

    def now_ms(self) -> int:
        return self._system.now_ms()

    def steady_s(self) -> float:
        return self._system.steady_s()

    def advance_ms(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1_000)


def opened(path: Path) -> Bench:
    """The file as a bench on a real clock; `Bench.store` is to be closed."""
    clock, ids = RealClock(), SystemIds()

    def store() -> SqliteStore:
        return SqliteStore(path, options=SqliteOptions(), clock=clock, ids=ids)

    return Bench("sqlite", store(), clock, SqliteAdministration(path, clock, ids), store)


class Part:
    """One writer's part, written down as it is played."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._marks = os.open(folder / "marks.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.book = Book(folder / "book.log")
        self.play = Rehearsal(opened(folder / "jobs.db"), seed, self.book, self._mark, page=500)
        wanted = (wanted.job_id for line in read_book(folder / "book.log") for wanted in line.jobs)
        self.play.known = list(dict.fromkeys(wanted))

    def close(self) -> None:
        self.play.bench.store.close()
        self.book.close()
        os.close(self._marks)

    def _mark(self, mark: Mark) -> None:
        os.write(self._marks, msgspec.json.encode(msgspec.structs.replace(mark, pid=os.getpid())) + b"\n")


def main(folder: Path, seed: int, kills: int) -> None:
    for count in range(kills):
        child = os.fork()
        if child == 0:
            _be_killed(folder, seed * 10_000 + count)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(f"writer {count + 1} was not killed, it ended with status {status}")


def _be_killed(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    _die_at_statement(dice.randint(1, STATEMENTS), executed=dice.random() < 0.5)
    Part(folder, seed).play.play(_STEPS)
    os._exit(0)


def _die_at_statement(number: int, *, executed: bool) -> None:
    """Die in the middle of a transaction, before or after that statement of those that are in one."""
    connect = sqlite3.connect
    left = iter(range(number, -1, -1))

    class Doomed(sqlite3.Connection):
        def execute(self, *statement: Any) -> sqlite3.Cursor:
            return self._or_die(lambda: super(Doomed, self).execute(*statement))

        def executemany(self, *statement: Any) -> sqlite3.Cursor:
            return self._or_die(lambda: super(Doomed, self).executemany(*statement))

        def _or_die(self, execute: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
            doomed = self.in_transaction and next(left, 0) == 0
            if not doomed or executed:
                cursor = execute()
            if doomed:
                os.kill(os.getpid(), signal.SIGKILL)
            return cursor

    def connect_doomed(*where: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*where, **{**settings, "factory": Doomed})
        return connection

    sqlite3.connect = connect_doomed  # type: ignore[assignment]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
