"""One connection of this process, opened at its first use, closed for a fork, used by one thread at a time.

It never decides how a connection is opened (`opening`) nor what is executed on it (`driver`).
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from runwick.contracts.errors import StoreHistoryBroken
from runwick.runtime.forks import Forkable
from runwick.stores.sqlite import forks


class File:
    """Which file stands behind a path, for all links of one opening: whatever they have read belongs to that one."""

    __slots__ = ("_known", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[int, int] | None = None

    def is_same(self) -> bool:
        """Whether it is the file that it was when this was asked first."""
        now = self._now()
        if self._known is None:
            self._known = now
        return self._known == now

    def _now(self) -> tuple[int, int] | None:
        """Device and inode behind the path; a commit into a file that has lost its name would be lost with it."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - before every transaction, and twice as fast
        except OSError:
            return None
        return status.st_dev, status.st_ino


class Link(Forkable):
    """A place for one connection: ``with link as connection`` waits for its turn and opens it when needed.

    Args:
        file: the database.
        connect: opens a connection; its errors reach whoever needed one.
    """

    def __init__(self, file: File, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__()
        self._file = file
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._user: int | None = None
        self._at_rest = False

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        self._user = threading.get_ident()
        try:
            return self._current()
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _current(self) -> sqlite3.Connection:
        if self._connection is None:
            forks.refuse_if_carried(self._file.path)
            self._connection = self._connect()
        if not self._file.is_same():
            raise StoreHistoryBroken(
                "store_history_broken",
                f"{self._file.path} is gone or was replaced since this process opened it; nothing was written; "
                "put the file back and restart the process",
            )
        return self._connection

    def _leave(self) -> None:
        self._user = None
        self._lock.release()

    def drop(self) -> None:
        """Close the connection, by whoever uses it: it cannot be trusted any more. The next use opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection once nobody uses it; one that is in use for long is left to its user."""
        if self._lock.acquire(timeout=forks.PATIENCE_S):
            self.drop()
            self._lock.release()

    def before_fork(self) -> None:
        in_a_call = self._user == threading.get_ident()
        self._at_rest = not in_a_call and self._lock.acquire(timeout=forks.PATIENCE_S)
        if self._at_rest:
            self.drop()

    def after_fork_in_parent(self) -> None:
        if self._at_rest:
            self._at_rest = False
            self._lock.release()

    def after_fork_in_child(self) -> None:
        if self._user is not None or self._connection is not None:  # it may just be opened by a thread that is not here
            forks.keep_untouched(self._file.path, self._connection)
            self._connection = None
        self._lock = threading.Lock()
        self._user = None
        self._at_rest = False
