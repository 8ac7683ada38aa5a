"""A place for one connection: opened at its first use, replaced when it is dead, used by one thread at a time.

It never decides how a connection is opened (`opening`) nor what is asked on it (`performer`).
"""

import contextlib
import threading
from collections.abc import Iterator

from runwick.runtime.forks import Forkable
from runwick.stores.redis import faults
from runwick.stores.redis.connection import Connection
from runwick.stores.redis.opening import Opening


class Link(Forkable):
    """One connection of this process.

    Args:
        opening: opens it.
        purpose: what the server shows of it.
    """

    def __init__(self, opening: Opening, purpose: str) -> None:
        super().__init__()
        self._opening = opening
        self._purpose = purpose
        self._connection: Connection | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def connection(self, wait_s: float) -> Iterator[Connection]:
        """Wait for one's turn, and have the connection until the end of the block.

        Raises:
            StoreError: nobody could be reached, or somebody used it all the time; nothing was sent.
        """
        if not self.seize(wait_s):
            raise faults.no_connection_free(self._opening.shown, wait_s * 1000)
        with self.seized() as connection:
            yield connection

    def seize(self, wait_s: float) -> bool:
        """Wait for one's turn, which `seized` ends; False when it did not come in time."""
        return self._lock.acquire(timeout=wait_s)

    @contextlib.contextmanager
    def seized(self) -> Iterator[Connection]:
        """Have the connection until the end of the block, and end one's turn.

        Raises:
            StoreError: nobody could be reached; nothing was sent.
        """
        lock = self._lock  # the one to let go, also in a child that was forked in here and has another by then
        try:
            connection = self._current()
            try:
                yield connection
            finally:
                if self._is_closed or not connection.is_sound:
                    self._drop(connection)
        finally:
            lock.release()

    def close(self, wait_s: float) -> None:
        """Close the connection for good once nobody uses it; one that is in use for long is left to its user."""
        self._is_closed = True
        if self._lock.acquire(timeout=wait_s):
            if self._connection is not None:
                self._drop(self._connection)
            self._lock.release()

    def _current(self) -> Connection:
        if self._connection is not None and self._connection.is_dead:
            self._drop(self._connection)
        if self._is_closed:
            raise faults.closed(self._opening.shown)
        if self._connection is None:
            self._connection = self._opening.connect(self._purpose)
        return self._connection

    def _drop(self, connection: Connection) -> None:
        if connection is self._connection:  # in a child that was forked in the middle it is not
            connection.close()
            self._connection = None

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._connection = None  # whose socket redis-py closes here, without a good-bye: the parent's goes on
