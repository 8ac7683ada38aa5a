"""Asks a store every 10 s whether it answers, in a thread of its own, and keeps what it said.

    check ─▶ read one row ─▶ `StoreSeen` ─▶ 10 s later again

Only this thread ever waits for the store. A call that does not come back holds up the next one and nobody else: how
long it has been under way is seen from outside.
"""

import threading
from collections.abc import Callable
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import ConfigurationError, RunwickError
from runwick.contracts.stores import Store
from runwick.health.checks import INCOMPATIBLE, PERIOD_S, StoreSeen
from runwick.runtime.forks import Forkable, notice

_NO_JOB: Final = bytes(16)
_JOIN_S: Final = 5.0
"""How long closing waits for a call that is under way."""


class StoreWatch(Forkable):
    """One store, watched from the first look at it on. A forked child begins afresh at its own first look.

    Args:
        application: whose rows are read.
        store: gives the store, opened at first use.
    """

    def __init__(self, application: str, store: Callable[[], Store], clock: Clock) -> None:
        super().__init__()
        self._application = application
        self._store = store
        self._clock = clock
        self._guard: threading.Lock
        self._over: threading.Event
        self._thread: threading.Thread
        self._is_watched: bool
        self._seen: StoreSeen
        self._begin_afresh()

    def look(self) -> StoreSeen:
        """What is known now. The first look begins the watch, and knows nothing yet."""
        notice()
        with self._guard:
            seen = self._seen
            if not self._is_watched:
                self._is_watched = True
                self._thread.start()
        return seen

    def close(self) -> None:
        """End the watch, until the next look."""
        with self._guard:
            thread, is_watched = self._thread, self._is_watched
            self._over.set()
            self._begin_afresh()
        if is_watched and thread is not threading.current_thread():
            thread.join(_JOIN_S)

    def after_fork_in_child(self) -> None:
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        """Know nothing, and be ready for the next first look."""
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._is_watched = False
        self._seen = StoreSeen()
        self._thread = threading.Thread(
            target=self._watch, args=(self._over,), name=f"runwick-health-{self._application}", daemon=True
        )

    def _watch(self, over: threading.Event) -> None:
        while not over.is_set():
            seen = msgspec.structs.replace(self._seen, asked_s=self._clock.steady_s())
            self._tell(over, seen)
            try:
                store = self._store()
                store.check()
                store.run(store.job(self._application, _NO_JOB))
            except Exception as error:
                self._tell(over, _failed(seen, error))
            else:
                self._tell(over, StoreSeen(answered_s=self._clock.steady_s()))
            over.wait(PERIOD_S)

    def _tell(self, over: threading.Event, seen: StoreSeen) -> None:
        if not over.is_set():
            self._seen = seen


def _failed(seen: StoreSeen, error: Exception) -> StoreSeen:
    """The same store when it has answered with this."""
    since_s = seen.asked_s if seen.failing_since_s is None else seen.failing_since_s
    if not isinstance(error, RunwickError):  # it could say anything
        return StoreSeen(seen.answered_s, failing_since_s=since_s, text=type(error).__name__)
    fits = error.code not in INCOMPATIBLE and not isinstance(error, ConfigurationError)
    return StoreSeen(seen.answered_s, failing_since_s=since_s, fits=fits, text=error.message)
