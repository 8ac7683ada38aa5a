"""What one process knows of its store's past, so that another store in its place, or an older state of it, is noticed.

::

    first opening    bind: identity, tables, timeline, position of the log
    every later one  the same identity and tables? the same timeline? a position that is not behind? ──no──▶ broken

Broken is for good: what this process holds (leases, receipts, numbers of names) may never have happened there. It takes
a new process to begin anew. The numbers are ones that the server raises anyway; nothing is written for this.
"""

from typing import NamedTuple

from runwick.contracts.errors import StoreHistoryBroken
from runwick.stores import refusals


class Moment(NamedTuple):
    """A store at one moment."""

    store_id: bytes
    tables: tuple[int, int]
    """The server's numbers of the database and of a table of the store: a dump that is read back gets others."""
    timeline: int
    """Of the server: a restore, or the promotion of a replica, begins another."""
    position: int
    """Of the write-ahead log, in bytes, flushed to disk: it never goes back on a server that is intact."""


class History:
    """Shared by all connections of a store object, over closing and forks too.

    Args:
        shown: the store's address for people.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._latest: Moment | None = None
        self._broken: tuple[str, str] | None = None

    @property
    def store_id(self) -> bytes | None:
        """The identity of the store that was met first; None before that."""
        return None if self._latest is None else self._latest.store_id

    @property
    def position(self) -> int:
        """How far the store was known to have come; what is read after this lies there or beyond."""
        return 0 if self._latest is None else self._latest.position

    def check(self) -> None:
        """Go on only while the history is whole.

        Raises:
            StoreHistoryBroken: it is not.
        """
        if self._broken is not None:
            raise StoreHistoryBroken(*self._broken)

    def go_on(self, found: Moment, known_position: int) -> None:
        """Take a moment into the history.

        Args:
            found: what was read.
            known_position: the `position` before it was read.

        Raises:
            StoreHistoryBroken: it does not follow from what is known.
        """
        self.check()
        known = self._latest or found
        if found.store_id != known.store_id:
            raise self.met(found.store_id)
        if found.tables != known.tables:
            raise self._break("its tables were made anew")
        if found.timeline != known.timeline:
            raise self._break(f"its server is on timeline {found.timeline}, it was on {known.timeline}")
        if found.position < known_position:
            raise self._break(f"its log stands {known_position - found.position:,} bytes before where it stood")
        self._latest = max(known, found, key=lambda moment: moment.position)

    def met(self, store_id: bytes) -> StoreHistoryBroken:
        """What to raise when the store calls itself so. A name that is not the known one breaks the history."""
        mismatch = refusals.identity_mismatch(self.store_id or store_id, store_id)
        if store_id != self.store_id:
            self._broken = mismatch.code, mismatch.message
        return mismatch

    def _break(self, why: str) -> StoreHistoryBroken:
        broken = StoreHistoryBroken(
            "store_history_broken",
            f"{self._shown} went back in time ({why}); nothing was written; restart against an intact store",
        )
        self._broken = broken.code, broken.message
        return broken
