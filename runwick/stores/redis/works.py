"""What a driver holds while it is open: connections and the threads for event loops. It runs nothing itself.

::

    claim, begin ─────▶ a thread and a connection of their own
    settle, release ──▶ likewise: what ends and what begins do not wait for each other
    renew, depart ────▶ likewise: nothing delays a lease
    everything else ──▶ threads and connections of the pool
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from runwick.contracts.stores import Act
from runwick.runtime.desk import Desk, Ended, Order
from runwick.runtime.place import in_executor
from runwick.stores.redis.connection import Connection
from runwick.stores.redis.link import Link
from runwick.stores.redis.opening import Opening
from runwick.stores.redis.pool import Pool

Connections = Callable[[], AbstractContextManager[Connection]]
"""Gives a connection for the length of a block."""

_CLAIMS: Final = frozenset({"claim", "begin"})
_ENDS: Final = frozenset({"settle", "release"})
_BEATS: Final = frozenset({"renew", "depart"})
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
        most = 1 if in_executor() else concurrent_calls + _BESIDE_CALLS  # there, callers wait for each other
        self._pool = Pool(opening, most)
        self._claims = Link(opening, "runwick-claims")
        self._ends = Link(opening, "runwick-settlements")
        self._beats = Link(opening, "runwick-heartbeats")
        self._limit_s = opening.limit_s
        self.calls: Connections = self._pool.connection
        claims = functools.partial(self._claims.connection, self._limit_s)
        ends = functools.partial(self._ends.connection, self._limit_s)
        beats = functools.partial(self._beats.connection, self._limit_s)
        self._call_desk = Desk[Act[Any]]("runwick-redis-call", most, functools.partial(handle, self.calls))
        self._claim_desk = Desk[Act[Any]]("runwick-redis-claim", 1, functools.partial(handle, claims))
        self._end_desk = Desk[Act[Any]]("runwick-redis-end", 1, functools.partial(handle, ends))
        self._beat_desk = Desk[Act[Any]]("runwick-redis-beat", 1, functools.partial(handle, beats))

    def desk(self, act: str) -> Desk[Act[Any]]:
        """Where acts of that name are run for event loops."""
        if act in _CLAIMS:
            return self._claim_desk
        if act in _ENDS:
            return self._end_desk
        return self._beat_desk if act in _BEATS else self._call_desk

    def close(self) -> None:
        """End the threads, close the connections; what is in use for long is left to its user."""
        for desk in (self._call_desk, self._claim_desk, self._end_desk, self._beat_desk):
            desk.close()
        for place in (self._pool, self._claims, self._ends, self._beats):
            place.close(self._limit_s)
