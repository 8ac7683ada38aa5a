"""What one process knows of its store's past, so that another store in its place, or an older state of it, is noticed.

::

    first opening   bind: the store's identity
    every answer    how many writes the application has seen: never fewer than before
    every call      sends both; the server refuses when it is another store, or knows of fewer writes ──▶ broken

Broken is for good: what this process holds (leases, receipts) may never have happened there. It takes a new process to
begin anew. A history that went back is found this way; that no write was lost cannot be proved.
"""

import threading
from typing import Final

from runwick.contracts.errors import StoreHistoryBroken
from runwick.runtime.forks import Forkable
from runwick.stores import refusals


class History(Forkable):
    """Shared by all connections of a store object, over closing and forks too.

    Args:
        shown: the store's address for people.
    """

    def __init__(self, shown: str) -> None:
        super().__init__()
        self._shown: Final = shown
        self._store_id: bytes | None = None
        self._writes: dict[str, int] = {}
        self._broken: tuple[str, str] | None = None
        self._guard = threading.Lock()

    @property
    def store_id(self) -> bytes | None:
        """The identity of the store that was met first; None before that."""
        return self._store_id

    def writes(self, application: str) -> int:
        """How many writes the application is known to have seen."""
        return self._writes.get(application, 0)

    def check(self) -> None:
        """Go on only while the history is whole.

        Raises:
            StoreHistoryBroken: it is not.
        """
        if self._broken is not None:
            raise StoreHistoryBroken(*self._broken)

    def meet(self, store_id: bytes) -> None:
        """Take a store by its identity: the first one is the one.

        Raises:
            StoreHistoryBroken: it is another one than before.
        """
        self.check()
        with self._guard:
            if self._store_id is None:
                self._store_id = store_id
        if store_id != self._store_id:
            raise self.met_other(store_id)

    def learn(self, application: str, writes: int) -> None:
        """Take what an answer said: so many writes has the application seen."""
        if writes > self._writes.get(application, 0):
            with self._guard:
                self._writes[application] = max(writes, self._writes.get(application, 0))

    def met_other(self, store_id: bytes) -> StoreHistoryBroken:
        """What to raise when the store calls itself so, and that is not the known name."""
        mismatch = refusals.identity_mismatch(self._store_id or store_id, store_id)
        self._broken = mismatch.code, mismatch.message
        return mismatch

    def went_back(self, application: str, found: int) -> StoreHistoryBroken:
        """What to raise when an application has seen fewer writes than are known."""
        known = self.writes(application)
        return self._break(f'application "{application}" stands at write {found:,}, it stood at {known:,}')

    def is_gone(self) -> StoreHistoryBroken:
        """What to raise when there is no store any more where one was."""
        return self._break("the store is not there any more")

    def _break(self, why: str) -> StoreHistoryBroken:
        broken = StoreHistoryBroken(
            "store_history_broken",
            f"{self._shown} went back in time ({why}); nothing was written; restart against an intact store",
        )
        self._broken = broken.code, broken.message
        return broken

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
