"""Tells other processes that work was made due, at most every 10 ms.

Whoever commits a notification holds a lock of the whole server while its commit is flushed, so a busy producer sends
one for many dispatches::

    the last one was sent 10 ms ago or more ──▶ `may_ride`: a dispatch takes it along, and tells with its own commit
                                   less ago ──▶ `tell`: at the end of these 10 ms, by a thread, one for all that came

What cannot be sent is left to polling.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

from runwick.runtime.forks import Forkable
from runwick.runtime.place import in_executor

INTERVAL_S: Final = 0.01

_FLUSH_S: Final = 5.0


class Teller(Forkable):
    """Collects what is to be told. Its thread starts with the first word and ends with `close`.

    Args:
        send: tells these applications' numbers; may raise.
    """

    def __init__(self, send: Callable[[list[int]], None]) -> None:
        super().__init__()
        self._send = send
        self._untold: set[int] = set()
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._told_s = float("-inf")

    def may_ride(self) -> bool:
        """Whether a transaction may tell by itself; then it need not be told that it did."""
        if in_executor():
            return True
        with self._news:
            now_s = time.monotonic()
            rides = not self._untold and now_s - self._told_s >= INTERVAL_S
            if rides:
                self._told_s = now_s
            return rides

    def tell(self, application: int) -> None:
        """Say that an application has work. Returns at once; in an executor, which has no threads, when it is said."""
        if in_executor():
            self._send_quietly([application])
            return
        with self._news:
            if self._untold and self._thread is not None:
                self._untold.add(application)  # the thread is awake: it would wake up for nothing
                return
            self._untold.add(application)
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="runwick-postgres-teller", daemon=True)
                with contextlib.suppress(RuntimeError):  # the interpreter is ending
                    self._thread.start()
            self._news.notify()

    def close(self) -> None:
        """Send what is left, and end the thread. The next word starts another."""
        with self._news:
            thread, self._thread = self._thread, None
            self._news.notify()
        if thread is not None and thread.is_alive():
            thread.join(_FLUSH_S)

    def after_fork_in_child(self) -> None:
        self._untold = set()  # what was not yet told is told by the parent
        self._news = threading.Condition()
        self._thread = None

    def _live(self) -> None:
        itself = threading.current_thread()
        while True:
            with self._news:
                while not self._untold and self._thread is itself:
                    self._news.wait()
                if not self._untold:
                    return
                if self._thread is itself:
                    self._news.wait_for(
                        lambda: self._thread is not itself, self._told_s + INTERVAL_S - time.monotonic()
                    )
                self._told_s = time.monotonic()
                untold, self._untold = sorted(self._untold), set()
            self._send_quietly(untold)

    def _send_quietly(self, applications: list[int]) -> None:
        with contextlib.suppress(Exception):
            self._send(applications)
