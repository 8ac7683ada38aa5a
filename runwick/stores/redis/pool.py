"""The connections for everything but claims, settlements and heartbeats: a few, for those who come at once.

Each is opened by the first caller who finds no other free, on the caller's own thread; so most processes open one.
"""

import contextlib
import queue
from collections.abc import Iterator
from typing import Final

from runwick.runtime.forks import Forkable
from runwick.stores.redis import faults
from runwick.stores.redis.connection import Connection
from runwick.stores.redis.link import Link
from runwick.stores.redis.opening import Opening

PURPOSE: Final = "runwick"


class Pool(Forkable):
    """Up to `most` connections.

    Args:
        opening: opens them.
        most: at least 1.
    """

    def __init__(self, opening: Opening, most: int) -> None:
        super().__init__()
        self._opening = opening
        self._links: Final = [Link(opening, PURPOSE) for _ in range(most)]
        self._free = self._all_free()

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Have a connection until the end of the block.

        Raises:
            StoreError: there is none; nothing was sent.
        """
        limit_s, free = self._opening.limit_s, self._free  # the latter also in a child that was forked in here
        try:
            link = free.get(timeout=limit_s)
        except queue.Empty:
            raise faults.no_connection_free(self._opening.shown, limit_s * 1000) from None
        try:
            with link.connection(limit_s) as connection:
                yield connection
        finally:
            free.put(link)

    def close(self, wait_s: float) -> None:
        """Close them for good; those that are in use for long are left to their users."""
        for link in self._links:
            link.close(wait_s)

    def _all_free(self) -> "queue.LifoQueue[Link]":
        """The one that came back last is taken first: it is open, and the others stay closed."""
        free: queue.LifoQueue[Link] = queue.LifoQueue()
        for link in reversed(self._links):
            free.put(link)
        return free

    def after_fork_in_child(self) -> None:
        self._free = self._all_free()
