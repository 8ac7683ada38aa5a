"""What a driver holds while it is open: connections and the threads for event loops. It runs nothing itself.

::

    claim, begin, release, settle ──▶ two threads and a connection of their own
    renew, depart ────────────────▶ a thread and a connection of their own: nothing delays a lease
    everything else ──────────────▶ threads and connections of the pool
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from runwick.contracts.stores import Act
from runwick.runtime.desk import Desk, Ended, Order
from runwick.stores.postgres.connection import Connection
from runwick.stores.postgres.link import Link
from runwick.stores.postgres.opening import Opening
from runwick.stores.postgres.pool import Pool

Connections = Callable[[], AbstractContextManager[Connection]]
"""Gives a connection for the length of a block."""

_CLAIMS: Final = frozenset({"claim", "begin", "release", "settle"})
_BEATS: Final = frozenset({"renew", "depart"})
_CLAIM_THREADS: Final = 2
"""While one waits for the server, the other packs what comes next, or unpacks what came before."""
_BESIDE_CALLS: Final = 2
"""Connections of the pool beyond one for each call of the application: for a worker's recovery and for its reads."""


class Works:
    """What a driver holds while it is open.

    Args:
        opening: opens the connections, each at its first use.
        concurrent_calls: how many calls of the application may be under way at once.
        handle: runs the acts that some event loop waits for.
    """

    def __init__(
        self,
        opening: Opening,
        concurrent_calls: int,
        handle: Callable[[Connections, Sequence[Order]], Sequence[Ended]],
    ) -> None:
        most = concurrent_calls + _BESIDE_CALLS
        self._pool = Pool(opening, most)
        self._claims = Link(opening, "runwick claims")
        self._beats = Link(opening, "runwick heartbeats")
        self._limit_s = opening.limit_s
        self.calls: Connections = self._pool.connection
        claims = functools.partial(self._claims.connection, self._limit_s)
        beats = functools.partial(self._beats.connection, self._limit_s)
        self._call_desk = Desk[Act[Any]]("runwick-postgres-call", most, functools.partial(handle, self.calls))
        self._claim_desk = Desk[Act[Any]]("runwick-postgres-claim", _CLAIM_THREADS, functools.partial(handle, claims))
        self._beat_desk = Desk[Act[Any]]("runwick-postgres-beat", 1, functools.partial(handle, beats))

    def desk(self, act: str) -> Desk[Act[Any]]:
        """Where acts of that name are run for event loops."""
        if act in _CLAIMS:
            return self._claim_desk
        return self._beat_desk if act in _BEATS else self._call_desk

    def close(self) -> None:
        """End the threads, close the connections; what is in use for long is left to its user."""
        for desk in (self._call_desk, self._claim_desk, self._beat_desk):
            desk.close()
        for place in (self._pool, self._claims, self._beats):
            place.close(self._limit_s)
