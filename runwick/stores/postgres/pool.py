"""The connections for everything but claims and heartbeats: one, and a pool of more for those who come at once.

::

    call ──▶ the first is free? ──yes──▶ the first, opened on the caller's thread
                   └─────────────no───▶ one of the pool, opened by the pool's own threads

Most processes never need a second connection, and what refuses the first is told at once. An executor never has a
second one, nor the threads of a pool: there, callers wait for each other.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from runwick.runtime.forks import Forkable
from runwick.runtime.place import in_executor
from runwick.stores.postgres import faults
from runwick.stores.postgres.connection import Connection
from runwick.stores.postgres.forks import keep_untouched
from runwick.stores.postgres.link import Link
from runwick.stores.postgres.opening import Opening

PURPOSE: Final = "runwick"

_LOOK_S: Final = 0.2
"""How often one who waits for the pool looks whether it can open connections at all."""

# What the library says of connections that it cannot open, its callers hear from us; logs have it where there are any.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class Pool(Forkable):
    """Up to `most` connections.

    Args:
        opening: opens them.
        most: at least 2.
    """

    def __init__(self, opening: Opening, most: int) -> None:
        super().__init__()
        self._opening = opening
        self._most = most
        self._first = Link(opening, PURPOSE)
        self._more: ConnectionPool[Connection] | None = None
        self._gave_up = False
        self._is_closed = False
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Have a connection until the end of the block.

        Raises:
            StoreError: there is none; nothing was sent.
        """
        if in_executor():
            chosen = self._first.connection(self._opening.limit_s)
        elif self._first.seize(0):
            chosen = self._first.seized()
        else:
            chosen = self._another()
        with chosen as connection:
            yield connection

    def close(self, wait_s: float) -> None:
        """Close them for good; those that are in use for long are left to their users."""
        self._first.close(wait_s)
        with self._guard:
            self._is_closed = True
            more, self._more = self._more, None
        if more is not None:
            more.close(wait_s)

    @contextlib.contextmanager
    def _another(self) -> Iterator[Connection]:
        more = self._opened()
        connection = self._take(more)
        try:
            yield connection
        finally:
            if more is self._more or more.closed:  # in a child that was forked in the middle it is neither
                if not connection.is_sound:
                    connection.close()
                more.putconn(connection)

    def _opened(self) -> ConnectionPool[Connection]:
        with self._guard:
            if self._is_closed:
                raise faults.closed(self._opening.shown)
            if self._more is None:
                self._more = ConnectionPool(
                    self._opening.conninfo(PURPOSE),
                    connection_class=Connection,
                    kwargs=self._opening.parameters,
                    configure=self._opening.examine,
                    min_size=0,
                    max_size=self._most - 1,
                    open=True,
                    name="runwick-postgres",
                    num_workers=1,
                    reconnect_timeout=0,
                    reconnect_failed=self._give_up,
                )
            return self._more

    def _take(self, more: "ConnectionPool[Connection]") -> Connection:
        until_s = time.monotonic() + self._opening.limit_s
        while True:
            try:
                connection = more.getconn(_LOOK_S)
            except PoolClosed:
                raise faults.closed(self._opening.shown) from None
            except PoolTimeout:
                if self._gave_up:
                    self._opening.connect(PURPOSE).close()  # says why
                    self._gave_up = False
                if time.monotonic() > until_s:
                    raise faults.no_connection_free(self._opening.shown, self._opening.limit_s * 1000) from None
                continue
            if not connection.is_dead:
                return connection
            connection.close()
            more.putconn(connection)

    def _give_up(self, more: "ConnectionPool[Any]") -> None:
        """The pool could not open a connection, on a thread where nobody hears why."""
        self._gave_up = True

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        if self._more is not None:
            keep_untouched(self._more)
            self._more = None
