"""One connection to the server: no call on it waits longer than its limit, and it knows whether it can be trusted.

Time limits of the server's alone would not do: a network that swallows packets, or a server that stands still, never
answers. A call that ran out of time leaves its connection in the middle of a statement, so it is used no more.
"""

import os
import select
import sys
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format, TransactionStatus

from runwick.stores.postgres import packed
from runwick.stores.postgres.quiet import quiet

Row = tuple[Any, ...]
RV = TypeVar("RV")

_SIGNALS_S: Final = 0.1
"""How often a wait looks for signals."""


_BYTES: Final = psycopg.adapters.get_loader(psycopg.adapters.types["bytea"].oid, Format.BINARY)
"""Answers what came as it is, for a ``uuid`` its 16 bytes."""
assert _BYTES is not None

ADAPTERS: Final = AdaptersMap(psycopg.adapters)
"""How values travel: as psycopg has it, except that ids come back as raw bytes, and what is packed goes as it is."""
ADAPTERS.register_loader("uuid", _BYTES)
packed.register(ADAPTERS)


class Connection(psycopg.Connection[Row]):
    """Used by one thread at a time, in the process that opened it, with a transaction of its own for each statement."""

    limit_s: float = 5.0
    """How long one call may take."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._process: Final = os.getpid()

    @classmethod
    def connect(cls, *arguments: Any, **named: Any) -> "Connection":
        """Open one, on its own or for a pool."""
        with quiet.opening():
            return super().connect(*arguments, **named)

    def fetch(self, statement: bytes, parameters: Sequence[Any] = (), *, prepare: bool = True) -> list[Row]:
        """Execute a statement; answers its rows, ids in them as 16 raw bytes.

        Args:
            statement: the text.
            parameters: for ``$1``, ``$2``…
            prepare: whether to keep it prepared for the next time.

        Raises:
            psycopg.Error: `is_sound` says whether it is the server's own answer, after which nothing of it was applied.
        """
        if os.getpid() != self._process:
            raise psycopg.OperationalError("a fork inside of a call: the connection belongs to the parent")
        cursor = self.cursor(binary=True)
        cursor.execute(statement, parameters or None, prepare=prepare)
        return [] if cursor.rownumber is None else cursor.fetchall()

    @property
    def is_sound(self) -> bool:
        """Whether it is open and waits for the next statement: whatever was sent has been answered in full."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE and os.getpid() == self._process

    @property
    def is_unanswered(self) -> bool:
        """Whether it is open, and the answer to what was sent did not come."""
        return self.pgconn.transaction_status == TransactionStatus.ACTIVE

    @property
    def is_dead(self) -> bool:
        """Whether it is of no use any more. A server says nothing unasked but good-bye."""
        return self.closed or bool(readable([self.fileno()], 0))

    def wait(self, gen: PQGen[RV], interval: float = _SIGNALS_S, timeout: float | None = None) -> RV:
        """psycopg's own way to wait, with a limit for what asks for none."""
        return super().wait(gen, interval, self.limit_s if timeout is None else timeout)


def readable(descriptors: Sequence[int], wait_s: float) -> list[int]:
    """Those of the sockets on which there is something to read, or the end; waits for the first so long."""
    if sys.platform == "win32":
        return select.select(descriptors, [], [], wait_s)[0]
    poll = select.poll()  # `select.select` cannot take descriptors above 1023
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(wait_s * 1000)]
