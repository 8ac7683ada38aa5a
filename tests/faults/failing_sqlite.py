"""SQLite that fails at a chosen statement: real connections and real files, and one lie at a time.

::

    connection.execute ──▶ n-th statement since it was armed? ── no ──▶ SQLite
                              └─ yes ──▶ an error instead of it, or after it was executed
"""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest


class Fault(NamedTuple):
    """What happens to one statement."""

    code: int
    """SQLite's result code, or `KILLED`."""
    text: str
    executed: bool
    """Whether the statement is executed before it fails."""
    undoes: bool = False
    """Whether SQLite rolls the transaction back by itself, as it does for some errors."""
    times: int = 1
    """How many statements in a row fail, so that the rollback may be among them."""

    def __str__(self) -> str:
        return f"{self.text} {'after' if self.executed else 'before'} ({self.times}, {self.undoes})"


KILLED: Final = -signal.SIGKILL
"""Not an error: the process is killed there."""

BUSY: Final = Fault(sqlite3.SQLITE_BUSY, "database is locked", executed=False)
FULL: Final = Fault(sqlite3.SQLITE_FULL, "database or disk is full", executed=False, undoes=True)
BROKEN: Final = Fault(sqlite3.SQLITE_IOERR, "disk I/O error", executed=False, undoes=True)
BROKEN_TWICE: Final = Fault(sqlite3.SQLITE_IOERR, "disk I/O error", executed=False, times=2)
LOST: Final = Fault(sqlite3.SQLITE_IOERR, "disk I/O error", executed=True)
INTERRUPTED: Final = Fault(sqlite3.SQLITE_INTERRUPT, "interrupted", executed=True)
FAULTS: Final = (BUSY, FULL, BROKEN, BROKEN_TWICE, LOST, INTERRUPTED)


class Saboteur:
    """Counts the statements of all connections, and lets some of them fail."""

    def __init__(self) -> None:
        self.statements = 0
        """Since it was armed or disarmed."""
        self.failed: Callable[[], None] = lambda: None
        """Called when a fault has been done with."""
        self._fault: Fault | None = None
        self._first = 0

    def arm(self, fault: Fault, number: int) -> None:
        """Let the statement of that number from now on fail, counted from 1."""
        self.statements, self._fault, self._first = 0, fault, number

    def disarm(self) -> None:
        self.statements, self._fault = 0, None

    def statement(self, connection: sqlite3.Connection, execute: Callable[[], Any]) -> Any:
        self.statements += 1
        fault = self._fault
        if fault is None or not self._first <= self.statements < self._first + fault.times:
            return execute()
        if fault.executed:
            execute().fetchall()
        elif fault.undoes and connection.in_transaction:
            sqlite3.Connection.execute(connection, "ROLLBACK")
        if fault.code == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.statements == self._first + fault.times - 1:
            self.failed()
        error = sqlite3.OperationalError(fault.text)
        error.sqlite_errorcode = fault.code
        raise error


@pytest.fixture
def saboteur(monkeypatch: pytest.MonkeyPatch) -> Iterator[Saboteur]:
    """Sabotages every SQLite connection that is opened from now on."""
    saboteur = Saboteur()
    connect = sqlite3.connect

    class Sabotaged(sqlite3.Connection):
        def execute(self, *statement: Any) -> sqlite3.Cursor:
            cursor: sqlite3.Cursor = saboteur.statement(self, lambda: super(Sabotaged, self).execute(*statement))
            return cursor

        def executemany(self, *statement: Any) -> sqlite3.Cursor:
            cursor: sqlite3.Cursor = saboteur.statement(self, lambda: super(Sabotaged, self).executemany(*statement))
            return cursor

    def connect_sabotaged(*where: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*where, **{**settings, "factory": Sabotaged})
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_sabotaged)
    yield saboteur
    saboteur.disarm()
